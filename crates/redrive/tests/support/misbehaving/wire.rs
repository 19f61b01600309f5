//! As much HTTP/1.1 as it takes to misbehave: a request is read properly, what is written is up to the path.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A connection, plain or encrypted.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send {
    /// The connection underneath.
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// A request with its body.
pub struct Request {
    pub method: String,
    /// With the query.
    pub target: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub async fn read(socket: &mut impl Socket) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if socket.read_buf(&mut bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let body = bytes.split_off(end + 4);
        let head = String::from_utf8_lossy(&bytes);
        let mut line = head.lines().next().unwrap_or_default().split(' ').map(str::to_owned);
        let (method, target) = (line.next().unwrap_or_default(), line.next().unwrap_or_default());
        let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().into()));
        let mut request = Self { method, target, headers: head.lines().skip(1).filter_map(header).collect(), body };
        let length = request.header("content-length").and_then(|value| value.parse().ok()).unwrap_or_default();
        while request.body.len() < length && socket.read_buf(&mut request.body).await? > 0 {}
        request.body.truncate(length);
        Ok(request)
    }

    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// All of it, for a test to look at. A header that came twice is a list.
    pub fn as_json(&self) -> Value {
        let mut headers = serde_json::Map::new();
        for (name, value) in &self.headers {
            match headers.get_mut(name) {
                Some(Value::Array(values)) => values.push(json!(value)),
                Some(first) => *first = json!([*first, value]),
                None => drop(headers.insert(name.clone(), json!(value))),
            }
        }
        let body = String::from_utf8_lossy(&self.body);
        json!({ "method": self.method, "target": self.target, "headers": headers, "body": body })
    }
}

/// Writes a head. Every connection is for one request.
pub async fn head(socket: &mut impl Socket, status: u16, headers: &[(&str, &str)]) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} Misbehaving\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    socket.write_all((head + "\r\n").as_bytes()).await?;
    socket.flush().await
}

/// Writes a proper response.
pub async fn respond(
    socket: &mut impl Socket,
    status: u16,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> io::Result<()> {
    let length = body.as_ref().len().to_string();
    let headers = [headers, &[("Content-Length", length.as_str())]].concat();
    head(socket, status, &headers).await?;
    socket.write_all(body.as_ref()).await
}

/// Writes one chunk of a chunked body.
pub async fn chunk(socket: &mut impl Socket, bytes: &[u8]) -> io::Result<()> {
    let framed = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    socket.write_all(&framed).await?;
    socket.flush().await
}

/// Says nothing until the client has gone.
pub async fn hang(socket: &mut impl Socket) -> io::Result<()> {
    while socket.read(&mut [0; 256]).await? > 0 {}
    Ok(())
}
