//! As much HTTP/1.1 as the site needs: one request in, one answer out, close.
//!
//! Written by hand because half of the answers are ones that a proper server would refuse to give.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::goods;

const HEAD_BYTES_MAX: usize = 32 * 1024;
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A request, as far as the routes care.
#[derive(Debug)]
pub(super) struct Request {
    /// Without the query.
    pub path: String,
    pub query: String,
    pub body: Vec<u8>,
}

/// A proper response.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    content_type: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
}

/// What the client gets to see.
#[derive(Debug)]
pub(super) enum Answer {
    Whole(Response),
    /// The head announces all of the body, half of it comes.
    BrokenOff(Response),
    /// Nothing, until the client gives up.
    Silence,
    /// A list of products that goes on for as long as the client reads.
    EndlessJson,
}

impl Request {
    /// A parameter of the query or of the form in the body.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let query = url::form_urlencoded::parse(self.query.as_bytes());
        let form = url::form_urlencoded::parse(&self.body);
        query.chain(form).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

impl Response {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type, headers: Vec::new(), body: body.into() }
    }

    pub(super) fn html(status: u16, body: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", body)
    }

    pub(super) fn text(body: String) -> Self {
        Self::new(200, "text/plain; charset=utf-8", body)
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    fn head(&self) -> String {
        let mut head = status_line(self.status);
        head += &format!("Content-Type: {}\r\nContent-Length: {}\r\n", self.content_type, self.body.len());
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head + "Connection: close\r\n\r\n"
    }
}

fn status_line(status: u16) -> String {
    let phrase = match status {
        200 => "OK",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Unknown",
    };
    format!("HTTP/1.1 {status} {phrase}\r\n")
}

/// Reads one request with its body, which must come with its length.
pub(super) async fn read_request(socket: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if socket.read_buf(&mut bytes).await? == 0 || bytes.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    let mut body = bytes.split_off(head_end + 4);
    let head = String::from_utf8_lossy(&bytes);
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let expected = body_length(&head);
    if expected > BODY_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    while body.len() < expected {
        if socket.read_buf(&mut body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    body.truncate(expected);
    Ok(Request { path: path.to_owned(), query: query.to_owned(), body })
}

fn body_length(head: &str) -> usize {
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    };
    head.lines().find_map(value).unwrap_or_default()
}

pub(super) async fn send(socket: &mut TcpStream, answer: Answer) -> io::Result<()> {
    match answer {
        Answer::Whole(response) => {
            socket.write_all(response.head().as_bytes()).await?;
            socket.write_all(&response.body).await?;
        }
        Answer::BrokenOff(response) => {
            socket.write_all(response.head().as_bytes()).await?;
            socket.write_all(&response.body[..response.body.len() / 2]).await?;
        }
        Answer::Silence => while socket.read(&mut [0; 256]).await? > 0 {},
        Answer::EndlessJson => send_endless(socket).await?,
    }
    socket.shutdown().await
}

/// Ends with the error that a client which has left causes.
async fn send_endless(socket: &mut TcpStream) -> io::Result<()> {
    let head = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    socket.write_all((status_line(200) + head).as_bytes()).await?;
    send_chunk(socket, r#"{"products":["#).await?;
    let product = |number| json!({ "number": number, "title": goods::title(number) }).to_string() + ",";
    // Made once: the site should not be what a client waits for.
    let block: String = (1..=1000).map(product).collect();
    loop {
        send_chunk(socket, &block).await?;
    }
}

async fn send_chunk(socket: &mut TcpStream, text: &str) -> io::Result<()> {
    socket.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}
