//! Connections, in real time: slow heads, huge heads, too many connections, and stopping the server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tourbillon_durable::Durable;
use tourbillon_server::{Api, Connections, Settings, Tls};

/// A server on its own port, stopped when this is dropped.
struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    fn start(limits: Connections) -> Self {
        Server::with(limits, Settings::default())
    }

    fn with(limits: Connections, settings: Settings) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                let api = Api::new(Durable::memory().unwrap(), settings);
                let stop = async {
                    let _ = stopped.await;
                };
                api.serve(listener, api.router(), limits, stop).await;
            });
        });
        Server { address: address.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends a request and reads the answer until the connection is closed.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(request.as_bytes());
        rest(stream)
    }

    fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn malformed_requests_are_answered_and_closed() {
    let server = Server::start(Connections::default());
    let many: String = (0..200).map(|nth| format!("H{nth}: x\r\n")).collect();
    let large = format!("X: {}\r\n", "x".repeat(300_000));
    let path = format!("/{}", "a".repeat(300_000));
    for (request, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), "400"),
        ("GET /healthz HTTP/1.1\r\nHo st: a\r\n\r\n".to_owned(), "400"),
        ("GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".to_owned(), "421"),
        ("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), "421"),
        ("POST /v1/queues/q/timers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"
            .to_owned(), "400"),
        ("POST /v1/queues/q/timers HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}".to_owned(), "400"),
        (format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), "431"),
        (format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{large}\r\n"), "431"),
        (format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"), "4"),
    ] {
        let answer = server.ask(&request);
        let shown: String = request.chars().take(80).collect();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{shown:?}: {answer:?}");
    }
    assert!(server.ask(GET).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_slow_head_is_408_and_an_idle_connection_is_closed() {
    let head_time = Duration::from_millis(200);
    let server = Server::start(Connections { head_time, ..Connections::default() });
    let answer = server.ask("GET /healthz HTTP/1.1\r\nHost: loc");
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer:?}");
    assert!(answer.contains("\"code\":\"timeout\""), "{answer:?}");
    assert!(answer.contains("tourbillon-now: 2"), "{answer:?}");
    assert_eq!(server.ask(""), "");
}

#[test]
fn at_the_most_connections_the_next_is_429() {
    let server = Server::start(Connections { most: 5, ..Connections::default() });
    let open: Vec<TcpStream> = (0..5).map(|_| server.connect()).collect();
    let began = Instant::now();
    // A connection counts once it is accepted, which takes a moment.
    let answer = loop {
        let answer = rest(server.connect());
        if !answer.is_empty() || began.elapsed() > Duration::from_secs(10) {
            break answer;
        }
    };
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains("too_many"), "{answer:?}");
    assert!(answer.contains("tourbillon-now: 2"), "{answer:?}");
    drop(open);
    let began = Instant::now();
    while !server.ask(GET).starts_with("HTTP/1.1 200") {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn a_server_that_stops_closes_idle_connections_and_ends() {
    let mut server = Server::start(Connections::default());
    let idle = server.connect();
    let mut used = server.connect();
    used.write_all(GET.replace("Connection: close\r\n", "").as_bytes()).unwrap();
    let mut first = [0; 12];
    used.read_exact(&mut first).unwrap();
    let began = Instant::now();
    server.stop();
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    drop((idle, used));
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn a_poll_whose_client_closes_or_half_closes_gets_nothing() {
    let server = Server::start(Connections::default());
    let poll = post("/v1/queues/q/receive", r#"{"wait":"20s","lease":"1h"}"#);
    let mut half = server.connect();
    half.write_all(poll.as_bytes()).unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut whole = server.connect();
    whole.write_all(poll.as_bytes()).unwrap();
    drop(whole);
    // With bytes after the request, hyper reads no further, and does not see the end.
    let more = format!("{poll}\r\n");
    let mut half_more = server.connect();
    half_more.write_all(more.as_bytes()).unwrap();
    half_more.shutdown(std::net::Shutdown::Write).unwrap();
    let mut whole_more = server.connect();
    whole_more.write_all(more.as_bytes()).unwrap();
    drop(whole_more);
    // The server closes the half-closed connections, the second one with an answer that has nothing.
    assert_eq!(rest(half), "");
    let began = Instant::now();
    assert!(!rest(half_more).contains("token"));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    server.ask(&post("/v1/queues/q/timers", r#"{"in":"0s","key":"a"}"#));
    let answer = server.ask(&poll);
    assert!(answer.contains(r#""key":"a""#), "{answer}");
}

#[test]
fn polls_are_answered_when_the_server_stops() {
    let mut server = Server::start(Connections::default());
    let mut poll = server.connect();
    poll.write_all(post("/v1/queues/q/receive", r#"{"wait":"20s"}"#).as_bytes()).unwrap();
    // A later request is answered, so the poll has arrived.
    assert!(server.ask(GET).starts_with("HTTP/1.1 200"));
    std::thread::sleep(Duration::from_millis(50));
    server.stop();
    assert!(rest(poll).ends_with(r#"{"deliveries":[]}"#));
}

#[test]
fn https_is_served_with_a_certificate() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, ServerName};
    use std::path::Path;
    use std::sync::Arc;

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/tls");
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    assert!(Tls::from_files(&key, &key).is_err());
    assert!(Tls::from_files(&certificate, &certificate).is_err());
    let tls = Some(Tls::from_files(&certificate, &key).unwrap());
    let server = Server::start(Connections { tls, ..Connections::default() });

    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(session, server.connect());
    stream.write_all(GET.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&answer));
    // Plain HTTP on this port fails.
    assert!(!server.ask(GET).contains("200"));
    // At the most connections, the next one gets nothing that is not TLS.
    let limits = Connections {
        tls: Some(Tls::from_files(&certificate, &key).unwrap()),
        most: 1,
        ..Connections::default()
    };
    let server = Server::start(limits);
    let _held = server.connect();
    assert_eq!(rest(server.connect()), "");
}

/// Bodies being received count with the bytes read so far. Beyond the limit a body is refused, and small ones still
/// fit.
#[test]
fn the_bytes_of_bodies_under_way_are_limited() {
    let settings = Settings { max_bytes: 1 << 20, ..Settings::default() };
    let server = Server::with(Connections::default(), settings);
    let head = "POST /v1/queues/q/timers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: 900000\r\n\r\n";
    let large = format!("{head}{}", " ".repeat(800_000));
    // Each body would hold 800 kB of the 1 MiB. The first fits, and another one is refused.
    let mut open: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
    open.iter_mut().for_each(|stream| drop(stream.write_all(large.as_bytes())));
    let began = Instant::now();
    let refused = loop {
        assert!(began.elapsed() < Duration::from_secs(20), "none is refused");
        let answer = open.iter_mut().find_map(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let mut answer = [0; 400];
            let length = stream.read(&mut answer).ok().filter(|length| *length > 0)?;
            Some(String::from_utf8_lossy(&answer[..length]).into_owned())
        });
        if let Some(answer) = answer {
            break answer;
        }
    };
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after"), "{refused}");
    // Small requests are still served.
    let made = server.ask(&post("/v1/queues/q/timers", r#"{"in":"1h"}"#));
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    // Once these connections are closed, there is room again.
    drop(open);
    let body = format!(r#"{{"in":"1h","payload":"{}"}}"#, "x".repeat(200_000));
    let began = Instant::now();
    while !server.ask(&post("/v1/queues/q/timers", &body)).starts_with("HTTP/1.1 201") {
        assert!(began.elapsed() < Duration::from_secs(10), "there is no room");
    }
}

/// Lists all timers with their payloads.
const LIST: &str =
    "GET /v1/queues/q/timers?payload=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Schedules that many timers with a payload of 250 kB each.
fn fill(server: &Server, count: usize) {
    let payload = "x".repeat(250_000);
    let timers: Vec<String> =
        (0..count).map(|_| format!(r#"{{"in":"1h","payload":"{payload}"}}"#)).collect();
    let body = format!(r#"{{"timers":[{}]}}"#, timers.join(","));
    let made = server.ask(&post("/v1/queues/q/timers", &body));
    assert!(made.starts_with("HTTP/1.1 201"), "{}", &made[..80]);
}

/// A client that reads a little of its answer now and then is disconnected, too.
#[test]
fn a_client_that_reads_too_slowly_is_cut_off() {
    let limits = Connections {
        answer_time: Duration::from_secs(1),
        answer_rate: 1 << 30,
        ..Connections::default()
    };
    let server = Server::start(limits);
    fill(&server, 60);
    // Fast enough.
    assert!(server.ask(LIST).len() > 15_000_000);
    let mut slow = server.connect();
    slow.write_all(LIST.as_bytes()).unwrap();
    let (mut piece, mut all, began) = (vec![0; 200_000], 0, Instant::now());
    while let Ok(bytes) = slow.read(&mut piece).and_then(|bytes| match bytes {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }) {
        all += bytes;
        assert!(began.elapsed() < Duration::from_secs(60), "{all} bytes in a minute");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(all < 15_000_000, "it has all of its answer after {:?}", began.elapsed());
}

/// A client that does not read its answer is disconnected, and the bytes of the answer are freed.
#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let limits = Connections { answer_time: Duration::from_secs(1), ..Connections::default() };
    let settings = Settings { max_bytes: 9 << 20, ..Settings::default() };
    let server = Server::with(limits, settings);
    fill(&server, 32);
    let mut deaf = server.connect();
    deaf.write_all(LIST.as_bytes()).unwrap();
    // Waits for the first byte of the answer.
    deaf.peek(&mut [0]).unwrap();
    // The unsent 8 MiB of its answer count, so a second answer of this size does not fit.
    let refused = server.ask(LIST);
    assert!(refused.starts_with("HTTP/1.1 429"), "{}", &refused[..80]);
    let began = Instant::now();
    loop {
        let answer = server.ask(LIST);
        if answer.starts_with("HTTP/1.1 200") {
            assert!(answer.len() > 8_000_000, "{}", answer.len());
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{}", &answer[..80]);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(rest(deaf).len() < 8_000_000);
}
