//! By what one is let in at a server: its address, a token, whom to believe that it is the one, and the way there.

use std::net::SocketAddr;
use std::time::Duration;

use redrive::tls::{Authorities, ensure_provider};
use redrive_core::failures::with_sources;
use reqwest::header::HeaderValue;

use crate::address::{AddressError, LOOPBACK, ServerAddress};
use crate::owner::OwnServer;

/// How long it may take to reach a server.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How long nothing may come of an answer that has begun.
const MORE_WITHIN: Duration = Duration::from_secs(60);

/// How to be let in at a server.
pub struct Access {
    /// Where it is.
    pub address: ServerAddress,
    /// What is sent to be let in.
    token: Option<HeaderValue>,
    /// Authorities that are believed beside the system's.
    pub authorities: Authorities,
    /// The proxy through which it is reached, if one was named for that: those of the environment are for other things.
    pub proxy: Option<String>,
    /// Asks only a server of this user or of root: the token is what was found in its token file.
    pub own_server_only: bool,
}

/// Why nobody can be let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The address does not do.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The token cannot be one.
    #[error("the token is not one: it is a single word of visible characters")]
    NoToken,
    /// The proxy cannot be one.
    #[error("the proxy is not an address")]
    NoProxy,
    /// Something is missing here to make connections.
    #[error("connections cannot be made: {0}")]
    NoClient(String),
}

impl Access {
    /// Access with a token, or without one to a server that has none yet.
    pub fn new(address: ServerAddress, token: Option<&str>) -> Result<Self, AccessError> {
        if token.is_some() && address.is_in_plain_text() {
            return Err(AddressError::InPlainText(address).into());
        }
        let token = token.map(bearer).transpose()?;
        Ok(Self { address, token, authorities: Authorities::default(), proxy: None, own_server_only: false })
    }

    /// What is sent to be let in.
    pub(crate) const fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    /// What makes connections.
    pub(crate) fn client(&self) -> Result<reqwest::Client, AccessError> {
        ensure_provider();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_WITHIN)
            .read_timeout(MORE_WITHIN)
            // A token goes to the server that was named and to nobody else.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .tls_certs_merge(self.authorities.certificates())
            .user_agent(concat!("redrive/", env!("CARGO_PKG_VERSION")))
            .no_proxy();
        if let Some((name, port)) = self.address.localhost() {
            builder = builder.resolve_to_addrs(&name, &LOOPBACK.map(|ip| SocketAddr::new(ip, port)));
        } else if let Some(proxy) = self.proxy.as_ref().filter(|_| !self.address.is_loopback()) {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(|_| AccessError::NoProxy)?);
        }
        if self.own_server_only {
            builder = builder.connector_layer(OwnServer);
        }
        builder.build().map_err(|error| AccessError::NoClient(with_sources(&error)))
    }
}

fn bearer(token: &str) -> Result<HeaderValue, AccessError> {
    let token = token.trim();
    let is_word = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    let value = if is_word { HeaderValue::from_str(&format!("Bearer {token}")).ok() } else { None };
    let mut value = value.ok_or(AccessError::NoToken)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_not_sent_where_others_could_read_it() {
        let access = |address: &str, token| Access::new(address.parse().expect("an address"), token).err();
        assert!(matches!(
            access("http://redrive.example", Some("secret")),
            Some(AccessError::Address(AddressError::InPlainText(_)))
        ));
        assert_eq!(access("http://redrive.example", None), None);
        assert_eq!(access("https://redrive.example", Some("secret\n")), None);
        for wrong in ["", "  ", "two words", "a\nb", "é"] {
            assert_eq!(access("https://redrive.example", Some(wrong)), Some(AccessError::NoToken), "{wrong:?}");
        }
    }
}
