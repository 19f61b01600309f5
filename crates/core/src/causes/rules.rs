//! Rules that people made by splitting causes: which failures of a key belong to another one.

use serde::{Deserialize, Serialize};

/// Stands between a key and what makes a part of it; no key of a failure by itself has it.
const PART: char = '/';

/// Which failures are meant, of those that have a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// Those of a target.
    Target(String),
    /// Those with a text in their message.
    Text(String),
}

impl Likeness {
    /// Whether a failure is one of them. The case of ASCII letters does not matter in a text.
    pub fn fits(&self, target: Option<&str>, message: &str) -> bool {
        match self {
            Self::Target(meant) => target == Some(meant),
            Self::Text(text) => message.to_ascii_lowercase().contains(&text.to_ascii_lowercase()),
        }
    }

    /// As it is written at the end of a key.
    pub fn label(&self) -> String {
        match self {
            Self::Target(target) => format!("target={target}"),
            Self::Text(text) => format!("text={text}"),
        }
    }
}

/// A rule: some failures of a key belong to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseRule {
    /// Whose failures.
    pub key: String,
    /// Which of them.
    pub like: Likeness,
    /// The key that they belong to.
    pub into: String,
}

/// All rules there are, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CauseRules {
    /// Grows with every change of them.
    pub version: u64,
    /// The rules.
    pub rules: Vec<CauseRule>,
}

impl CauseRules {
    /// The key that a failure belongs to, which may be part of a part of its own. The oldest rule that fits wins.
    pub fn resolve<'a>(&'a self, key: &'a str, target: Option<&str>, message: &str) -> &'a str {
        let mut resolved = key;
        // No rule is followed twice, so that rules which lead in a circle end.
        for _ in &self.rules {
            let fits = |rule: &&CauseRule| rule.key == resolved && rule.like.fits(target, message);
            match self.rules.iter().find(fits) {
                Some(rule) => resolved = &rule.into,
                None => break,
            }
        }
        resolved
    }
}

/// The key that failures of a part have by themselves.
pub fn own_key(key: &str) -> &str {
    key.split_once(PART).map_or(key, |(own, _)| own)
}

/// The key of a part of what another key recognises.
pub fn part_key(key: &str, like: &Likeness) -> String {
    format!("{key}{PART}{}", like.label())
}

/// Whether a key is a part of what another recognises.
pub fn is_part(key: &str, of: &str) -> bool {
    key.strip_prefix(of).is_some_and(|rest| rest.starts_with(PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(key: &str, like: Likeness, into: &str) -> CauseRule {
        CauseRule { key: key.to_owned(), like, into: into.to_owned() }
    }

    fn rules(rules: Vec<CauseRule>) -> CauseRules {
        CauseRules { version: 1, rules }
    }

    #[test]
    fn failures_find_their_way_through_parts_of_parts() {
        let rules = rules(vec![
            rule("k", Likeness::Target("a.example".into()), "k/a"),
            rule("k/a", Likeness::Text("Late".into()), "k/a/late"),
        ]);
        assert_eq!(rules.resolve("k", None, "late"), "k");
        assert_eq!(rules.resolve("k", Some("b.example"), "late"), "k");
        assert_eq!(rules.resolve("k", Some("a.example"), "early"), "k/a");
        assert_eq!(rules.resolve("k", Some("a.example"), "too LATE"), "k/a/late");
        assert_eq!(rules.resolve("other", Some("a.example"), "late"), "other");
    }

    #[test]
    fn the_oldest_rule_wins_and_a_circle_ends() {
        let any = || Likeness::Text("x".into());
        let two = rules(vec![rule("k", any(), "first"), rule("k", any(), "second")]);
        assert_eq!(two.resolve("k", None, "x"), "first");
        let circle = rules(vec![rule("a", any(), "b"), rule("b", any(), "a")]);
        assert!(["a", "b"].contains(&circle.resolve("a", None, "x")));
    }
}
