//! Lets clients in while the store has no token: those that send the token of its token file, or open the one-time link that the server
//! printed. A browser that did gets a session of that token, which every server of the store knows.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redrive::config::TokenFile;
use redrive::tokens::{TokenError, new_secret};
use redrive_core::time::Timestamp;
use redrive_core::tokens::TokenHash;

/// Time in which a link can be opened.
const LINK_HOLDS: Duration = Duration::from_secs(10 * 60);

/// The token of the token file, and the links that were not opened yet.
pub struct Local {
    token: TokenHash,
    links: Mutex<Vec<(TokenHash, Timestamp)>>,
}

impl Local {
    pub fn new(file: &TokenFile) -> Self {
        Self { token: TokenHash::of(file.token()), links: Mutex::default() }
    }

    /// Returns the hash of the token.
    pub const fn token(&self) -> TokenHash {
        self.token
    }

    /// Returns true if a secret is the token.
    pub fn is(&self, secret: &str) -> bool {
        self.token == TokenHash::of(secret.trim())
    }

    /// A link's secret, which opens one session.
    pub fn make_link(&self, now: Timestamp) -> Result<String, TokenError> {
        let secret = new_secret("rdo_")?;
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|(_, ends_at)| *ends_at > now);
        links.push((TokenHash::of(&secret), now + LINK_HOLDS));
        Ok(secret)
    }

    /// Returns true if a link's secret is good, and uses it up.
    pub fn take_link(&self, secret: &str, now: Timestamp) -> bool {
        let hash = TokenHash::of(secret);
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let found = links.iter().position(|(link, _)| *link == hash);
        found.is_some_and(|at| links.swap_remove(at).1 > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_for_its_time() {
        let local = Local::new(&TokenFile::of_token("rdl_a"));
        let now = Timestamp::from_millis(1_763_215_320_000);
        assert!(local.is("rdl_a\n") && !local.is("rdl_b") && !local.is(""));
        let link = local.make_link(now).expect("made");
        assert!(!local.take_link("rdo_", now));
        assert_eq!((local.take_link(&link, now), local.take_link(&link, now)), (true, false));
        let late = local.make_link(now).expect("made");
        assert!(!local.take_link(&late, now + LINK_HOLDS));
    }
}
