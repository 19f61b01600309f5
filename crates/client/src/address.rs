//! Where a server is, and what may be sent there: a secret never goes in plain text, unless it stays on this machine.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use redrive_core::paths::in_path;
use url::{Host, Url};

/// Where the API begins below a server's address.
const BASE: [&str; 2] = ["api", "v1"];

/// The address of a server, with a path if it is reached below one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress(Url);

/// Why a text is no address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is no address at all.
    #[error("{0:?} is not the address of a server: expected one such as https://redrive.example")]
    NotAnAddress(String),
    /// There is a name or password in it, which would be seen by who lists processes.
    #[error("the address of a server has no name and no password in it")]
    HasSecret,
    /// There is something after its path.
    #[error("the address of a server has nothing after its path: {0:?} does")]
    HasQuery(String),
    /// A token would go over the network in plain text.
    #[error("{0} is plain HTTP: a token is only sent over https, or to this machine")]
    InPlainText(ServerAddress),
}

impl ServerAddress {
    /// Whether what is sent there stays on this machine.
    pub fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => is_localhost(name),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
            None => false,
        }
    }

    /// Its port.
    pub fn port(&self) -> Option<u16> {
        self.0.port_or_known_default()
    }

    /// Whether others on the way could read what is sent there.
    pub fn is_in_plain_text(&self) -> bool {
        self.0.scheme() != "https" && !self.is_loopback()
    }

    /// The address of something below the API. A name of dots alone would be a step in a path: it is written with a tilde before it.
    pub(crate) fn of(&self, names: &[&str]) -> Url {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(BASE).extend(names.iter().map(|name| in_path(name)));
        }
        url
    }

    /// The name that means this machine, if it is one: it is not looked up, so that nobody else can answer to it.
    pub(crate) fn localhost(&self) -> Option<(String, u16)> {
        let name = self.0.domain().filter(|name| is_localhost(name))?;
        Some((name.to_owned(), self.0.port_or_known_default()?))
    }
}

fn is_localhost(name: &str) -> bool {
    name.trim_end_matches('.').eq_ignore_ascii_case("localhost")
}

/// The addresses of this machine that `localhost` means.
pub(crate) const LOOPBACK: [IpAddr; 2] =
    [IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)];

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let no_address = || AddressError::NotAnAddress(text.to_owned());
        let url = Url::parse(text.trim()).map_err(|_| no_address())?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressError::HasSecret);
        }
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(no_address());
        }
        match (url.query(), url.fragment()) {
            (None, None) => Ok(Self(url)),
            _ => Err(AddressError::HasQuery(text.to_owned())),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ServerAddress {
        text.parse().expect("an address")
    }

    #[test]
    fn what_is_asked_is_below_the_path_that_the_server_has() {
        let url = |text: &str, names: &[&str]| address(text).of(names).to_string();
        assert_eq!(url("http://127.0.0.1:7171", &["causes"]), "http://127.0.0.1:7171/api/v1/causes");
        assert_eq!(
            url("https://a.example/redrive/", &["causes", "x/y?z"]),
            "https://a.example/redrive/api/v1/causes/x%2Fy%3Fz"
        );
        assert_eq!(url("https://a.example/one/two", &["status"]), "https://a.example/one/two/api/v1/status");
        let pause = url("https://a.example", &["pipelines", "..", "pause"]);
        assert_eq!(pause, "https://a.example/api/v1/pipelines/~../pause", "dots alone are no steps");
        assert_eq!(address("https://a.example/redrive/").to_string(), "https://a.example/redrive");
    }

    #[test]
    fn only_what_stays_here_may_go_in_plain_text() {
        for safe in [
            "https://redrive.example",
            "http://127.0.0.1:7171",
            "http://localhost:7171",
            "http://[::1]:1",
            "http://LOCALHOST.",
        ] {
            assert!(!address(safe).is_in_plain_text(), "{safe}");
        }
        for open in ["http://redrive.example", "http://10.0.0.1", "http://localhost.evil.example", "http://[::2]:1"] {
            assert!(address(open).is_in_plain_text(), "{open}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_server_is_refused() {
        for text in
            ["", "redrive.example", "ftp://a.example", "sqlite:a.db", "https://", "postgres://a/b", "unix:/run/x"]
        {
            assert!(matches!(text.parse::<ServerAddress>(), Err(AddressError::NotAnAddress(_))), "{text:?}");
        }
        assert_eq!("https://me:secret@a.example".parse::<ServerAddress>(), Err(AddressError::HasSecret));
        assert!(matches!("https://a.example/?token=x".parse::<ServerAddress>(), Err(AddressError::HasQuery(_))));
    }
}
