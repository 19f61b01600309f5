//! Ports on which no HTTP is ever spoken: one that refuses connections, one that never completes them.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

/// A port with nothing listening: connections are refused.
///
/// The socket stays bound for as long as this lives, so that no other test can be given the port meanwhile.
pub struct ClosedPort {
    address: SocketAddr,
    _bound: Socket,
}

/// A port whose queue of connections is full: connecting hangs, as it does behind a firewall that drops packets.
pub struct FullPort {
    address: SocketAddr,
    _listening: Socket,
    _queued: Vec<TcpStream>,
}

impl ClosedPort {
    /// Takes a free port.
    pub fn reserve() -> Self {
        let (bound, address) = bind();
        Self { address, _bound: bound }
    }

    /// The URL of a path that nobody serves.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl FullPort {
    /// Takes a free port and connects to it until it takes no more. Needs Linux, which drops what exceeds the queue.
    pub fn fill() -> Self {
        let (listening, address) = bind();
        listening.listen(0).expect("listening");
        let mut queued = Vec::new();
        while let Ok(socket) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            queued.push(socket);
            assert!(queued.len() < 64, "this system completes connections that nobody accepts");
        }
        Self { address, _listening: listening, _queued: queued }
    }

    /// The URL of a path that cannot be reached.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn bind() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    let address = socket.local_addr().expect("an address").as_socket().expect("an internet address");
    (socket, address)
}
