//! Connections to a server of this machine that is sent what is in its token file: after a server was killed, another user may listen
//! on its port.
//!
//! A connection is looked at when it is made and before anything is sent over it, so nobody can take the port in between.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fs, io};

use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use tower_layer::Layer;
use tower_service::Service;

/// The connections of this machine, where the system lists them.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Reads of the tables at most: they are not of one moment, and a line may be missed.
const READS_MAX: usize = 3;

/// State of a socket that listens.
const LISTENS: &str = "0A";

/// Why a connection is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOwn {
    /// Its other end is another user's.
    #[error("what listens there belongs to the user {0}, neither to you nor to root: nothing was sent to it")]
    Foreign(u32),
    /// Its other end is not listed.
    #[error("this system does not say whose the server there is: nothing was sent to it")]
    Unknown,
}

impl NotOwn {
    /// The reason why a request failed, if it is one of these.
    pub fn find(error: &reqwest::Error) -> Option<Self> {
        let mut cause = error.source();
        while let Some(source) = cause {
            if let Some(found) = source.downcast_ref() {
                return Some(*found);
            }
            cause = source.source();
        }
        None
    }
}

/// Refuses connections whose other end belongs to neither this user nor root.
#[derive(Clone, Copy)]
pub struct OwnServer;

impl<S> Layer<S> for OwnServer {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded(inner)
    }
}

/// Makes connections, and looks at each.
#[derive(Clone)]
pub struct Guarded<S>(S);

type Failure = Box<dyn Error + Send + Sync>;

impl<S, R> Service<R> for Guarded<S>
where
    S: Service<R, Error = Failure>,
    S::Response: Connection + Send,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Failure>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let connecting = self.0.call(request);
        Box::pin(async move {
            let connection = connecting.await?;
            let mut known = http::Extensions::new();
            connection.connected().get_extras(&mut known);
            let ends = known.get::<HttpInfo>().map(|ends| (ends.local_addr(), ends.remote_addr()));
            tokio::task::spawn_blocking(move || ends.map_or(Err(NotOwn::Unknown), check)).await??;
            Ok(connection)
        })
    }
}

fn check((near, far): (SocketAddr, SocketAddr)) -> Result<(), NotOwn> {
    // Other systems list no connections.
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let own = [0, rustix::process::geteuid().as_raw()];
    for _ in 0..READS_MAX {
        let tables: io::Result<String> = TABLES.iter().filter_map(|path| read(path).transpose()).collect();
        let owners = tables.map(|tables| owners(&tables, near, far)).unwrap_or_default();
        if let Some(foreign) = owners.iter().find(|owner| !own.contains(owner)) {
            return Err(NotOwn::Foreign(*foreign));
        }
        if !owners.is_empty() {
            return Ok(());
        }
    }
    Err(NotOwn::Unknown)
}

/// A table; none where the system has no such addresses.
fn read(path: &str) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// The users to whom the far end of a connection belongs. An end that was not accepted yet has no owner of its own: it belongs to those
/// who listen there, and they listen for as long as it waits.
fn owners(tables: &str, near: SocketAddr, far: SocketAddr) -> Vec<u32> {
    let lines = || tables.lines().filter_map(Line::read);
    match lines().find(|line| (line.near, line.far) == (canonical(far), canonical(near))) {
        Some(end) if end.is_accepted => vec![end.user],
        Some(_) => lines().filter(|line| line.listens_on(canonical(far))).map(|line| line.user).collect(),
        None => Vec::new(),
    }
}

/// A line of a table.
struct Line {
    near: SocketAddr,
    far: SocketAddr,
    is_listening: bool,
    user: u32,
    is_accepted: bool,
}

impl Line {
    fn read(line: &str) -> Option<Self> {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, near, far, state, _, _, _, user, _, file, ..] = fields[..] else { return None };
        Some(Self {
            near: address(near)?,
            far: address(far)?,
            is_listening: state == LISTENS,
            user: user.parse().ok()?,
            is_accepted: file != "0",
        })
    }

    fn listens_on(&self, at: SocketAddr) -> bool {
        let is_there = self.near.ip() == at.ip() || self.near.ip().is_unspecified();
        self.is_listening && is_there && self.near.port() == at.port()
    }
}

/// Reads an address: words of 32 bits as this machine writes numbers, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip: IpAddr = match ip.len() {
        8 => word(0)?.into(),
        _ => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            <[u8; 16]>::try_from(words).ok()?.into()
        }
    };
    Some(canonical(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn line(near: &str, far: &str, state: &str, user: u32, file: u32) -> String {
        format!(
            "   1: {near} {far} {state} 00000000:00000000 00:00000000 00000000  {user}        0 {file} 1 0 100 0 0 10 0\n"
        )
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_far_end_of_a_connection_belongs_to_its_own_user_or_else_to_who_listens() {
        let (near, far) = (([127, 0, 0, 1], 40_000).into(), ([127, 0, 0, 1], 7_171).into());
        let (v4, client) = ("0100007F:1C03", "0100007F:9C40");
        let mapped = |v4: &str| format!("0000000000000000FFFF0000{v4}");
        let listening = line("00000000:1C03", "00000000:0000", LISTENS, 7, 50);
        let own_end = line(client, v4, "01", 9, 51);
        let owners = |lines: &[&str]| owners(&format!("{HEAD}{}", lines.concat()), near, far);
        assert_eq!(owners(&[&listening, &own_end, &line(v4, client, "01", 8, 52)]), [8], "it was accepted");
        assert_eq!(owners(&[&listening, &own_end, &line(&mapped(v4), &mapped(client), "01", 8, 52)]), [8]);
        let waiting = line(v4, client, "01", 0, 0);
        assert_eq!(owners(&[&listening, &own_end, &waiting]), [7], "it was not accepted yet");
        let another = line("0200007F:1C03", "00000000:0000", LISTENS, 6, 53);
        assert_eq!(owners(&[&listening, &another, &waiting]), [7]);
        assert!(owners(&[&waiting]).is_empty() && owners(&[&listening, &own_end]).is_empty());
        assert_eq!(address("00000000000000000000000001000000:0050"), Some("[::1]:80".parse().expect("an address")));
    }
}
