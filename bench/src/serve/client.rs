//! A connection to the server: HTTP/1.1, kept alive, one request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::text;

/// The payload of a timer: 100 bytes.
pub(super) const PAYLOAD: &str = concat!(
    "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""
);

pub(super) struct Client {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Client {
    pub(super) fn open(address: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        stream.set_read_timeout(Some(Duration::from_secs(90))).map_err(text)?;
        Ok(Client {
            stream: BufReader::with_capacity(1 << 16, stream),
            address: address.to_owned(),
        })
    }

    /// Sends `POST /v1/queues/q/PATH` and returns the body of the answer, which must be a success.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Result<String, String> {
        self.ask("POST", &format!("/v1/queues/q/{path}"), body)
    }

    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String, String> {
        let (host, length) = (&self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).map_err(text)?;
        let (mut head, mut length) = (String::new(), 0);
        self.stream.read_line(&mut head).map_err(text)?;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if self.stream.read_line(&mut line).map_err(text)? == 0 {
                return Err(format!("the server closed the connection: {head}"));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(text)?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).map_err(text)?;
        let body = String::from_utf8(body).map_err(text)?;
        match head.split(' ').nth(1) {
            Some(status) if status.starts_with('2') => Ok(body),
            _ => Err(format!("{method} {path} was answered {}: {body}", head.trim())),
        }
    }

    /// Receives and acknowledges deliveries. Returns the lateness of each in microseconds.
    pub(super) fn take(&mut self, max: usize, wait: &str) -> Result<Vec<i64>, String> {
        let answer = self.post("receive", &format!(r#"{{"max":{max},"wait":"{wait}"}}"#))?;
        let at = wall_micros();
        let answer: Value = serde_json::from_str(&answer).map_err(text)?;
        let deliveries = answer["deliveries"].as_array().ok_or("an answer without deliveries")?;
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let tokens: Vec<String> = deliveries.iter().map(|one| one["token"].to_string()).collect();
        self.post("ack", &format!(r#"{{"tokens":[{}]}}"#, tokens.join(",")))?;
        let late = |one: &Value| {
            let due = one["payload"].as_i64().unwrap_or(0);
            at - due * 1000
        };
        Ok(deliveries.iter().map(late).collect())
    }
}

/// The wall clock in microseconds.
pub(super) fn wall_micros() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

/// A moment, given in milliseconds, in the API's format.
pub(super) fn moment(millis: i64) -> String {
    let moment = tourbillon_durable::values::Moment::from_millis(millis.max(0) as u64);
    moment.to_string()
}
