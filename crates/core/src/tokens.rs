//! Tokens: by which a server knows who asks, and what each may do. Only hashes of them are kept.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{PipelineName, TokenName};
use crate::time::Timestamp;

/// What a token may do. Each role may also do what the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Reports letters and outcomes, uploads payloads, enqueues, leases, settles and tries.
    Worker,
    /// Replays, and acts on causes, breakers, pipelines and alerts.
    Operator,
    /// Discards, and handles tokens.
    Admin,
}

impl Role {
    /// All of them, from the least to the most.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Worker, Self::Operator, Self::Admin];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Worker => "worker",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not a role: expected viewer, worker, operator or admin"))
    }
}

/// Which pipelines a token is for: one by its name, or all whose names begin alike, as in `shop-*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PipelinePattern(String);

impl PipelinePattern {
    /// The beginning of the names that it means, if it is not a whole name.
    pub fn beginning(&self) -> Option<&str> {
        self.0.strip_suffix('*')
    }

    /// Whether a pipeline is meant.
    pub fn covers(&self, name: &PipelineName) -> bool {
        match self.beginning() {
            Some(beginning) => name.as_str().starts_with(beginning),
            None => self.0 == name.as_str(),
        }
    }
}

impl TryFrom<String> for PipelinePattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let beginning = text.strip_suffix('*').unwrap_or(&text);
        match beginning.is_empty() && text == "*" || beginning.parse::<PipelineName>().is_ok() {
            true => Ok(Self(text)),
            false => Err(format!("{text:?} names no pipelines: expected a name, or the beginning of names and a *")),
        }
    }
}

impl From<PipelinePattern> for String {
    fn from(pattern: PipelinePattern) -> Self {
        pattern.0
    }
}

impl FromStr for PipelinePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl fmt::Display for PipelinePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What is kept of a token's secret. Two are compared in constant time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenHash(blake3::Hash);

impl TokenHash {
    /// The hash of a secret. Secrets are random and long, so that nothing slower is needed.
    pub fn of(secret: &str) -> Self {
        Self(blake3::hash(secret.as_bytes()))
    }

    /// From what is kept.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes.into())
    }

    /// As it is kept.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// What it is called.
    pub name: TokenName,
    /// What it may do.
    pub role: Role,
    /// The pipelines that it is for; none means all.
    #[serde(default)]
    pub pipelines: Vec<PipelinePattern>,
    /// Whether it may read payloads.
    pub payloads: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom it was made.
    pub created_by: String,
    /// When it is no longer good, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When somebody revoked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
}

impl Token {
    /// Whether it is still good.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }

    /// Whether it is for a pipeline.
    pub fn covers(&self, name: &PipelineName) -> bool {
        self.pipelines.is_empty() || self.pipelines.iter().any(|pattern| pattern.covers(name))
    }
}

/// Why a token cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefused {
    /// The first token is of another role: nobody could make or revoke tokens over the network.
    #[error("the first token of a store must have the role admin, not {0}: from then on everybody needs one")]
    FirstNotAdmin(Role),
    /// The first token is for some pipelines only.
    #[error("the first token of a store must be for all pipelines: from then on everybody needs one")]
    FirstNotForAll,
    /// It would be no good from the beginning.
    #[error("it would expire at {0}, which is over")]
    Expired(Timestamp),
}

/// Checks a token that is to be made in a store that has, or ever had, others.
pub fn check(token: &Token, had_others: bool, now: Timestamp) -> Result<(), TokenRefused> {
    match token.expires_at {
        Some(at) if at <= now => Err(TokenRefused::Expired(at)),
        _ if had_others => Ok(()),
        _ if token.role != Role::Admin => Err(TokenRefused::FirstNotAdmin(token.role)),
        _ if !token.pipelines.is_empty() => Err(TokenRefused::FirstNotForAll),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(role: Role, pipelines: &[&str]) -> Token {
        Token {
            name: "ops".parse().expect("a name"),
            role,
            pipelines: pipelines.iter().map(|text| text.parse().expect("a pattern")).collect(),
            payloads: true,
            created_at: Timestamp::from_millis(0),
            created_by: "ada".to_owned(),
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        }
    }

    #[test]
    fn a_token_is_for_the_pipelines_it_names() {
        let name = |text: &str| text.parse::<PipelineName>().expect("a name");
        let some = token(Role::Worker, &["shop-*", "cart"]);
        for (pipeline, covered) in
            [("shop-1", true), ("shop-", true), ("cart", true), ("carts", false), ("shop", false)]
        {
            assert_eq!(some.covers(&name(pipeline)), covered, "{pipeline}");
        }
        assert!(token(Role::Worker, &[]).covers(&name("any")) && token(Role::Worker, &["*"]).covers(&name("any")));
        for wrong in ["", "**", "a*b", "shop *", "*shop"] {
            assert!(wrong.parse::<PipelinePattern>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_first_token_can_make_others() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(check(&token(Role::Admin, &[]), false, now), Ok(()));
        assert_eq!(check(&token(Role::Operator, &[]), false, now), Err(TokenRefused::FirstNotAdmin(Role::Operator)));
        assert_eq!(check(&token(Role::Admin, &["shop"]), false, now), Err(TokenRefused::FirstNotForAll));
        assert_eq!(check(&token(Role::Viewer, &["shop"]), true, now), Ok(()));
        let over = Token { expires_at: Some(now), ..token(Role::Viewer, &[]) };
        assert_eq!(check(&over, true, now), Err(TokenRefused::Expired(now)));
    }

    #[test]
    fn a_token_is_good_until_it_expires_or_is_revoked() {
        let at = Timestamp::from_millis;
        let limited = Token { expires_at: Some(at(5)), ..token(Role::Viewer, &[]) };
        assert!(limited.is_good(at(4)) && !limited.is_good(at(5)));
        assert!(!Token { revoked_at: Some(at(1)), ..token(Role::Viewer, &[]) }.is_good(at(2)));
    }

    #[test]
    fn roles_grow() {
        assert!(Role::Viewer < Role::Worker && Role::Worker < Role::Operator && Role::Operator < Role::Admin);
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
    }
}
