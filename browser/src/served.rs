//! `tourbillon serve` in this process, with its own store and a clock that can be set. It can be stopped and restarted
//! on its port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tourbillon_cli::serve::{Settings, run};
use tourbillon_durable::values::Moment;

/// A server, stopped and its store deleted on drop.
pub struct Served {
    address: SocketAddr,
    data: PathBuf,
    tokens: Option<PathBuf>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Served {
    /// Starts a server on any port.
    ///
    /// # Panics
    /// It does not start.
    pub fn start() -> Served {
        Served::of(None)
    }

    /// As [`start`](Served::start), with a token file of these lines.
    ///
    /// # Panics
    /// It does not start.
    pub fn with_tokens(lines: &str) -> Served {
        Served::of(Some(lines))
    }

    fn of(tokens: Option<&str>) -> Served {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tourbillon-served-{}-{number}", std::process::id());
        let data = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&data).expect("a folder for the store");
        let tokens = tokens.map(|lines| {
            let path = data.join("tokens");
            std::fs::write(&path, lines).expect("a file of tokens");
            path
        });
        let address = Settings::default().listen;
        let mut served = Served { address, data, tokens, running: None };
        served.resume();
        served
    }

    /// Restarts it on the same port.
    ///
    /// # Panics
    /// It does not start.
    pub fn resume(&mut self) {
        let settings = Settings {
            data: self.data.join("store"),
            listen: self.address,
            token_file: self.tokens.clone(),
            test_clock: Some(None),
            ..Settings::default()
        };
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = builder.worker_threads(1).enable_io().build().expect("a runtime");
            let stop = async {
                let _ = stopped.await;
            };
            let (_reload, reloads) = tokio::sync::mpsc::channel(1);
            let ready =
                |_: &str, address: SocketAddr| tell.send(address).map_err(std::io::Error::other);
            runtime.block_on(run(settings, stop, reloads, ready)).expect("the server runs");
        });
        self.address = told.recv().expect("the server starts");
        self.running = Some((stop, thread));
    }

    /// Stops it and closes its connections.
    pub fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Sets the server's wall clock to this far ahead of the system's. It keeps running from there.
    ///
    /// # Panics
    /// The server refuses the call.
    pub fn set_ahead(&self, by: Duration) {
        let now = Moment::from(SystemTime::now() + by).to_string();
        self.send("/v1/test/clock", &json!({ "now": now }));
    }

    /// Posts to a path under `/v1/queues/`; returns the answer.
    ///
    /// # Panics
    /// The answer is not a success.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.send(&format!("/v1/queues/{path}"), body)
    }

    fn send(&self, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        let (host, body) = (self.address, body.to_string());
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer boss\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, text) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        assert!(head.contains(" 20"), "{path}: {answer}");
        serde_json::from_str(text).expect("it answers JSON")
    }

    /// Makes dead timers whose last error is `error`.
    ///
    /// # Panics
    /// The server refuses a call.
    pub fn bury(&self, queue: &str, keys: &[String], error: &str) {
        let timer = |key: &String| json!({"key": key, "in": "0s", "retry": {"attempts": 1}});
        let timers: Vec<Value> = keys.iter().map(timer).collect();
        self.post(&format!("{queue}/timers"), &json!({ "timers": timers }));
        let mut left = keys.len();
        while left > 0 {
            let got = self.post(&format!("{queue}/receive"), &json!({"max": 1000, "wait": "20s"}));
            let got = got["deliveries"].as_array().expect("a list").clone();
            let tokens: Vec<&Value> = got.iter().map(|one| &one["token"]).collect();
            left -= tokens.len();
            self.post(&format!("{queue}/nack"), &json!({"tokens": tokens, "error": error}));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}
