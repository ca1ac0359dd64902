//! Which calls are retried. The server counts requests, and loses them all or gives all the same answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tourbillon_client::{
    Client, Condition, Conflict, Error, List, NewTimer, Queue, QueueChange, Receive,
};
use tourbillon_server::Settings;

use crate::served::Server;

const SECOND: Duration = Duration::from_secs(1);

/// Reads each whole request and passes it to `answer`, then closes the connection.
fn front(answer: impl Fn(usize, &[u8], TcpStream) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            reader.read_exact(&mut body).unwrap();
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let whole =
                [head.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes(), &body]
                    .concat();
            answer(number, &whole, stream);
        }
    });
    (address, count)
}

fn client(address: &str) -> Client {
    Client::builder(address).retries(1).build().unwrap()
}

/// Makes each call. Returns the names of those that were retried.
async fn repeated(queue: &Queue, count: &AtomicUsize) -> Vec<&'static str> {
    let keyed = NewTimer::after(SECOND).key("k");
    let bare = NewTimer::after(SECOND);
    let change = QueueChange::default();
    let mut again = Vec::new();
    macro_rules! try_all {
        ($($name:literal $call:expr;)*) => {$(
            let before = count.load(Ordering::SeqCst);
            assert!($call.await.is_err(), $name);
            if count.load(Ordering::SeqCst) - before > 1 {
                again.push($name);
            }
        )*};
    }
    try_all! {
        "get" queue.get("k");
        "list" queue.list(&List::default());
        "stats" queue.stats();
        "schedule" queue.schedule(&keyed);
        "keep" queue.schedule_or(&keyed, Conflict::Keep);
        "many" queue.schedule_many(std::slice::from_ref(&keyed), Conflict::Refuse);
        "put if" queue.replace("k", &keyed, Condition::Generation(1));
        "put if absent" queue.replace("k", &keyed, Condition::Absent);
        "cancel" queue.cancel("k", Condition::Any);
        "cancel keys" queue.cancel_keys(&["k"]);
        "ack" queue.ack(&["t"]);
        "nack" queue.nack(&["t"], None, None);
        "extend" queue.extend(&["t"], SECOND);
        "set" queue.set(&change);
        "! put" queue.replace("k", &keyed, Condition::Any);
        "! replace" queue.schedule_or(&keyed, Conflict::Replace);
        "! forgotten at once" queue.schedule(&keyed.clone().remember(Duration::ZERO));
        "! forgotten while the next is under way" queue.schedule(&keyed.clone().remember(SECOND * 20));
        "! one forgotten at once" queue.schedule_many(
            &[keyed.clone().key("l").remember(Duration::ZERO), keyed.clone()], Conflict::Keep);
        "! put if absent, forgotten" queue.replace(
            "k", &keyed.clone().remember(Duration::ZERO), Condition::Absent);
        "! no key" queue.schedule(&bare);
        "! some without a key" queue.schedule_many(&[keyed.clone(), bare.clone()], Conflict::Refuse);
        "! move to" queue.move_to("k", std::time::SystemTime::now(), Condition::Any);
        "! move to if" queue.move_to("k", std::time::SystemTime::now(), Condition::Generation(1));
        "! move after" queue.move_after("k", SECOND, Condition::Any);
        "! run" queue.run("k");
        "! redrive" queue.redrive(None);
        "! prefix" queue.cancel_prefix("k");
        "! receive" queue.receive(&Receive::default());
        "! delete" queue.delete(true);
    }
    again
}

/// The number of calls that are safe to repeat, and of all calls.
const SAFE: usize = 14;
const ALL: usize = 30;

#[tokio::test]
async fn a_lost_call_is_repeated_if_that_is_safe() {
    let (address, count) = front(|_, _, stream| drop(stream));
    let again = repeated(&client(&address).queue("q"), &count).await;
    assert!(again.len() == SAFE && again.iter().all(|name| !name.starts_with('!')), "{again:?}");
}

/// A server that gives every request the same answer.
fn canned(
    status: &'static str,
    headers: &'static str,
    code: &'static str,
) -> (String, Arc<AtomicUsize>) {
    front(move |_, _, mut stream| {
        let body = format!(r#"{{"title":"","status":503,"detail":"d","code":"{code}"}}"#);
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
    })
}

#[tokio::test]
async fn a_call_that_did_nothing_is_repeated() {
    for (status, code, expected) in [
        ("503 Service Unavailable", "unavailable", ALL),
        ("429 Too Many Requests", "too_many", ALL),
        ("503 Service Unavailable", "unknown", SAFE),
        ("500 Internal Server Error", "internal", 0),
        ("409 Conflict", "key_taken", 0),
    ] {
        let (address, count) = canned(status, "retry-after: 0\r\n", code);
        let again = repeated(&client(&address).queue("q"), &count).await;
        assert_eq!(again.len(), expected, "{code}: {again:?}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_a_long_pause_is_not_asked_again() {
    let (address, count) = canned("429 Too Many Requests", "retry-after: 60\r\n", "too_many");
    assert!(client(&address).queue("q").get("k").await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

/// The first try is carried out and its answer is lost. The retry is refused, and the error shows that the first may be
/// the cause.
#[tokio::test]
async fn the_trace_of_a_lost_call_is_told_apart() {
    let server = Server::start(Settings::default());
    let to = server.address;
    let (address, count) = front(move |number, request, mut stream| {
        let mut behind = TcpStream::connect(to).unwrap();
        behind.write_all(request).unwrap();
        let mut answer = Vec::new();
        behind.read_to_end(&mut answer).unwrap();
        if number > 0 {
            stream.write_all(&answer).unwrap();
        }
        let _ = stream.shutdown(Shutdown::Both);
    });
    let queue = client(&address).queue("q");
    // The request is forwarded unchanged, so its `Host` names the front.
    let error = queue.schedule(&NewTimer::after(SECOND * 60).key("k")).await.unwrap_err();
    assert_eq!((error.code(), error.may_have_happened()), (Some("key_taken"), true), "{error}");
    assert!(matches!(&error, Error::Refused(problem) if problem.after_lost));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let direct = Client::new(server.url()).unwrap().queue("q");
    assert_eq!(direct.stats().await.unwrap().counts.scheduled, 1);
    let error = queue.schedule(&NewTimer::after(SECOND).key("k")).await.unwrap_err();
    assert!(!error.may_have_happened(), "{error}");
}

#[tokio::test]
async fn an_answer_that_never_comes_is_lost() {
    let (address, _) = front(|_, _, stream| {
        std::thread::spawn(move || {
            let mut byte = [0];
            let _ = (&stream).read(&mut byte);
        });
    });
    let client =
        Client::builder(address).retries(0).patience(Duration::from_millis(50)).build().unwrap();
    let error = client.queues().await.unwrap_err();
    assert!(matches!(error, Error::Lost(_)) && error.may_have_happened(), "{error}");
}

#[tokio::test]
async fn a_stream_of_events_that_never_begins_is_lost() {
    let (address, _) = front(|_, _, stream| {
        std::thread::spawn(move || {
            let mut byte = [0];
            let _ = (&stream).read(&mut byte);
        });
    });
    let client =
        Client::builder(address).retries(0).patience(Duration::from_millis(50)).build().unwrap();
    let events = tokio::time::timeout(SECOND * 10, client.events(None)).await.expect("an end");
    assert!(matches!(events, Err(Error::Lost(_))), "{events:?}");
}
