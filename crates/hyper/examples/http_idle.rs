//! An HTTP server on hyper whose idle connections are closed, with Tourbillon's timer in place of the runtime's.
//!
//! `cargo run -p tourbillon-hyper --example http_idle`
//!
//! The server differs from any other on hyper in one line: `.timer(HyperTimer::new())`. The example contains its own
//! clients: one keeps sending requests and stays connected, one sends one request and goes silent, one sends only half
//! a request.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tourbillon::tasks;
use tourbillon_hyper::HyperTimer;

/// A connection that has not sent a complete request head within this time is closed.
const IDLE: Duration = Duration::from_millis(400);

async fn hello(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::new(Bytes::from_static(b"hello"))))
}

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(HyperTimer::new())
                .header_read_timeout(IDLE)
                .serve_connection(TokioIo::new(stream), service_fn(hello));
            // An idle connection ends with a timeout error, which is expected here.
            let _ = connection.await;
        });
    }
}

struct Client {
    name: &'static str,
    stream: TcpStream,
    began: Instant,
}

impl Client {
    async fn connect(name: &'static str, server: SocketAddr) -> std::io::Result<Self> {
        Ok(Client { name, stream: TcpStream::connect(server).await?, began: Instant::now() })
    }

    async fn ask(&mut self) -> std::io::Result<()> {
        self.stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
        let mut answer = [0; 1024];
        let length = self.stream.read(&mut answer).await?;
        let text = String::from_utf8_lossy(&answer[..length]);
        self.say(text.lines().next().unwrap_or("nothing"));
        Ok(())
    }

    /// Waits until the server closes the connection; returns the time since `since`.
    async fn wait_for_the_end(&mut self, since: Instant) -> std::io::Result<Duration> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await?;
        self.say("the server has closed the connection");
        Ok(since.elapsed())
    }

    fn say(&self, what: &str) {
        println!("{:>5} ms  {:<6} {what}", self.began.elapsed().as_millis(), self.name);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = listener.local_addr()?;
    tokio::spawn(serve(listener));

    let busy = async {
        let mut client = Client::connect("busy", server).await?;
        for _ in 0..5 {
            client.ask().await?;
            tasks::sleep(IDLE / 2).await;
        }
        client.say("was never closed");
        Ok::<_, std::io::Error>(())
    };
    let silent = async {
        let mut client = Client::connect("silent", server).await?;
        client.ask().await?;
        client.wait_for_the_end(Instant::now()).await
    };
    let slow = async {
        let mut client = Client::connect("slow", server).await?;
        client.stream.write_all(b"GET / HTTP/1.1\r\nho").await?;
        client.wait_for_the_end(client.began).await
    };
    // A client should limit its wait for a server, too.
    let limit = Duration::from_secs(4);
    let all = tasks::timeout(limit, async { tokio::join!(busy, silent, slow) });
    let (busy, silent, slow) = all.await?;
    busy?;
    for idle in [silent?, slow?] {
        assert!(idle >= IDLE && idle < 3 * IDLE, "closed after {idle:?}");
    }
    Ok(())
}
