//! As little of HTTP as the benchmark needs: requests one after another on a connection that stays open. The client runs on the same
//! machine as the server, so that every instruction of it is taken from what is measured.

use anyhow::{Context, Result, ensure};
use redrive::config::TokenFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A connection to the server.
pub struct Connection {
    stream: TcpStream,
    address: String,
    token: String,
    read: Vec<u8>,
}

impl Connection {
    /// Connects to `127.0.0.1:PORT`.
    pub async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).context("a port")?;
        let token = TokenFile::find(port, || None).context("the server left its token for clients of this user")?;
        Ok(Self { stream, address: address.to_owned(), token, read: Vec::new() })
    }

    /// Posts a body, and reads the answer; it is an error if it is none of success.
    pub async fn post(&mut self, path: &str, body: &str) -> Result<Vec<u8>> {
        let head = format!(
            "POST /api/v1{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        self.stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
        let (status, length) = self.read_head().await?;
        let length = length.context("the answer has no length")?;
        while self.read.len() < length {
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server closed the connection");
        }
        let answer: Vec<u8> = self.read.drain(..length).collect();
        ensure!((200..300).contains(&status), "{path}: {status} {}", String::from_utf8_lossy(&answer));
        Ok(answer)
    }

    /// Begins to hear of changes.
    pub async fn listen(&mut self) -> Result<()> {
        let head = format!(
            "GET /api/v1/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\r\n",
            self.address, self.token
        );
        self.stream.write_all(head.as_bytes()).await?;
        let (status, _) = self.read_head().await?;
        ensure!(status == 200, "/events: {status}");
        Ok(())
    }

    /// Reads whatever comes, until nothing does any more.
    pub async fn read_on(mut self) -> Result<()> {
        let mut bytes = [0; 4_096];
        while self.stream.read(&mut bytes).await? > 0 {}
        Ok(())
    }

    /// Reads the head of an answer: its status, and how long the body is.
    async fn read_head(&mut self) -> Result<(u16, Option<usize>)> {
        let end = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            ensure!(self.read.len() < HEAD_BYTES_MAX, "the head of an answer has no end");
            ensure!(self.stream.read_buf(&mut self.read).await? > 0, "the server closed the connection");
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        let head = String::from_utf8(head)?;
        let status = head.split(' ').nth(1).context("an answer has a status")?.parse()?;
        let length = head.lines().filter_map(|line| line.split_once(": "));
        let mut length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length")).map(|(_, value)| value);
        Ok((status, length.next().map(str::parse).transpose()?))
    }
}
