//! The tour beside the server's page, at `/tour/`: one message of a run, over a WebSocket.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::served::{Scratch, Server, read_head};

const RUN: &str = r#"{"name":"x","wheel":{"kind":"hierarchical","slots":[20]},"steps":[{"schedule":"A","delay":3}]}"#;

/// Opens a session with these further headers. Returns the socket and the status of the answer.
fn session(server: &Server, headers: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let address = &server.address;
    let request = format!(
        "GET /tour/live HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         {headers}\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let head = read_head(&mut stream);
    (stream, head)
}

/// Sends a text and reads the answer, which has 126 to 65 535 bytes.
fn ask(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    let mut frame = vec![0x81, 0xff];
    frame.extend((text.len() as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    stream.write_all(&frame)?;
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    assert_eq!(head[..2], [0x81, 126]);
    let mut answer = vec![0; u16::from_be_bytes([head[2], head[3]]).into()];
    stream.read_exact(&mut answer)?;
    Ok(String::from_utf8(answer).unwrap())
}

#[test]
fn the_tour_is_answered() {
    let scratch = Scratch::new("tour");
    let server = Server::start(scratch.path(), &[]);
    let (mut socket, head) = session(&server, "");
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let answer = ask(&mut socket, RUN).unwrap();
    assert!(answer.contains(r#""pending":1"#), "{answer}");
}

#[test]
fn the_tour_needs_a_token_if_there_are_tokens() {
    let scratch = Scratch::new("tour-token");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let file = scratch.path().join("tokens");
    std::fs::write(&file, "ann:secret-1:read").unwrap();
    let arguments = ["--token-file", file.to_str().unwrap()];
    let server = Server::start(&scratch.path().join("data"), &arguments);
    // In base64: `secret-1`, `secret-2`, and bytes that no header may have.
    for (headers, status) in [
        ("", "401"),
        ("Authorization: Bearer secret-2\r\n", "401"),
        ("Authorization: Bearer secret-1\r\n", "101"),
        ("Sec-WebSocket-Protocol: tourbillon\r\n", "401"),
        ("Sec-WebSocket-Protocol: tourbillon, token.c2VjcmV0LTI\r\n", "401"),
        ("Sec-WebSocket-Protocol: tourbillon, token.AAA\r\n", "401"),
        ("Sec-WebSocket-Protocol: tourbillon, token.c2VjcmV0LTE\r\n", "101"),
    ] {
        let (mut socket, head) = session(&server, headers);
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{headers} {head}");
        if status == "101" {
            let chosen = head.to_lowercase().contains("sec-websocket-protocol: tourbillon\r");
            assert_eq!(chosen, headers.starts_with("Sec"), "{head}");
            assert!(ask(&mut socket, RUN).is_ok(), "{headers}");
        }
    }
    // The files of the tour need none, as those of the page.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    write!(stream, "GET /tour/ HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).unwrap();
    assert!(read_head(&mut stream).starts_with("HTTP/1.1 200"));
}
