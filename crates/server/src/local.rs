//! Who is let in while the store has no token: whoever sends what is in its token file, or opens the one-time link that the server
//! printed. A browser that did gets a cookie that every server of the store knows, since it is made of that token.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redrive::config::TokenFile;
use redrive::sessions::SESSION_HOLDS;
use redrive::tokens::{TokenError, new_secret};
use redrive_core::time::Timestamp;
use redrive_core::tokens::TokenHash;

/// What the token is turned into the key of sessions with.
const SESSIONS: &str = "redrive 2026-11 sessions of stores without tokens";

/// How long a link can be opened.
const LINK_HOLDS: Duration = Duration::from_secs(10 * 60);

/// The token of the token file, and the links that were not opened yet.
pub struct Local {
    token: TokenHash,
    key: [u8; 32],
    links: Mutex<Vec<(TokenHash, Timestamp)>>,
}

impl Local {
    pub fn new(file: &TokenFile) -> Self {
        let token = file.token();
        Self {
            token: TokenHash::of(token),
            key: blake3::derive_key(SESSIONS, token.as_bytes()),
            links: Mutex::default(),
        }
    }

    /// Whether a secret is the token.
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

    /// Whether a link's secret is good; it is not from then on.
    pub fn take_link(&self, secret: &str, now: Timestamp) -> bool {
        let hash = TokenHash::of(secret);
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let found = links.iter().position(|(link, _)| *link == hash);
        found.is_some_and(|at| links.swap_remove(at).1 > now)
    }

    /// What a browser sends from then on.
    pub fn open_session(&self, now: Timestamp) -> Result<String, TokenError> {
        let session = format!("{}_{}", (now + SESSION_HOLDS).as_millis(), new_secret("")?);
        Ok(format!("rdl_{session}_{}", self.seal(&session)))
    }

    /// Whether a browser sent what it was given, and its time is not over.
    pub fn knows(&self, sent: &str, now: Timestamp) -> bool {
        let parts = sent.strip_prefix("rdl_").and_then(|sent| sent.rsplit_once('_'));
        let Some((session, seal)) = parts else { return false };
        let ends_at = session.split_once('_').and_then(|(ends_at, _)| ends_at.parse().ok()).map(Timestamp::from_millis);
        // Hashes are compared in constant time.
        blake3::Hash::from_hex(seal).is_ok_and(|seal| seal == self.seal(session)) && ends_at.is_some_and(|at| at > now)
    }

    fn seal(&self, session: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.key, session.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_good_once_and_a_session_for_its_time() {
        let local = Local::new(&TokenFile::of_token("rdl_a"));
        let now = Timestamp::from_millis(1_763_215_320_000);
        assert!(local.is("rdl_a\n") && !local.is("rdl_b") && !local.is(""));
        let link = local.make_link(now).expect("made");
        assert!(!local.take_link("rdo_", now));
        assert_eq!((local.take_link(&link, now), local.take_link(&link, now)), (true, false));
        let late = local.make_link(now).expect("made");
        assert!(!local.take_link(&late, now + LINK_HOLDS));
        let session = local.open_session(now).expect("opened");
        let another = Local::new(&TokenFile::of_token("rdl_a"));
        assert!(another.knows(&session, now), "each server of the store knows it");
        assert!(!another.knows(&session, now + SESSION_HOLDS));
        assert!(!Local::new(&TokenFile::of_token("rdl_b")).knows(&session, now));
        let longer = session.replacen("rdl_1", "rdl_2", 1);
        assert!(!local.knows(&longer, now) && !local.knows("rdl_", now) && !local.knows("", now));
    }
}
