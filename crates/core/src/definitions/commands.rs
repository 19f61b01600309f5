//! Commands that were given on a command line, kept so that what they left dead can be replayed without repeating them.
//!
//! Whoever can write a store could put any command into it. So a kept command is known by a fingerprint, and runs only where the
//! person who asks has run the very same before, or says that the store is to be trusted.

use serde::{Deserialize, Serialize};

use super::MASK;
use crate::secrets::Secrets;

/// A command as it was given, with all that decides what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCommand {
    /// The program and its arguments. What looks secret is masked: such a command cannot be run again as it is kept.
    pub words: Vec<String>,
    /// The folder that it ran in.
    pub folder: String,
    /// Whether it works from a saved payload alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pure: bool,
    /// Whether it runs for many jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub persistent: bool,
    /// How long one attempt may take, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most memory that it may use, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
}

impl KeptCommand {
    /// The same as it is kept, and the arguments that look secret, as far as they may be shown.
    pub fn masked(self, secrets: &Secrets) -> (Self, Vec<String>) {
        let mut words = Vec::with_capacity(self.words.len());
        let mut found = Vec::new();
        let mut secret_flag = None;
        for word in self.words {
            let (masked, flag) = mask(&word, secret_flag.take(), secrets);
            if masked != word {
                found.push(masked.clone());
            }
            words.push(masked);
            secret_flag = flag;
        }
        (Self { words, ..self }, found)
    }

    /// Whether nothing of it is masked, so that it can be run again.
    pub fn is_whole(&self) -> bool {
        !self.words.is_empty() && !self.words.iter().any(|word| word.contains(MASK))
    }

    /// What it is known by: two commands that do not do the same have another one.
    pub fn fingerprint(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        blake3::derive_key("redrive: a command that a person ran", text.as_bytes()).map(|b| format!("{b:02x}")).concat()
    }
}

/// A word as it is kept, after a flag with a secret name if there was one; and the flag whose value comes next, if it is one of those.
fn mask(word: &str, after: Option<()>, secrets: &Secrets) -> (String, Option<()>) {
    let name = word.trim_start_matches('-');
    if word.starts_with('-') {
        return match name.split_once('=') {
            Some((name, _)) if secrets.is_secret_name(name) => {
                (format!("{}={MASK}", word.split('=').next().unwrap_or_default()), None)
            }
            Some(_) => (secrets.mask(word), None),
            None => (word.to_owned(), secrets.is_secret_name(name).then_some(())),
        };
    }
    match (after, word.split_once('=')) {
        (Some(()), _) => (MASK.to_owned(), None),
        (None, Some((name, _))) if secrets.is_secret_name(name) => (format!("{name}={MASK}"), None),
        _ => (secrets.mask(word), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> KeptCommand {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        KeptCommand { words, folder: "/home/ada/shop".into(), ..KeptCommand::default() }
    }

    #[test]
    fn arguments_that_look_secret_are_not_kept() {
        let plain = command(&["python3", "scrape.py", "--depth", "3", "-v", "a=b"]);
        let (kept, secret) = plain.clone().masked(&Secrets::default());
        assert_eq!((kept, secret.len()), (plain, 0));
        let words = [
            "solve.py",
            "--api-key",
            "sk-1",
            "--token=sk-2",
            "password=sk-3",
            "https://a.example/?api_key=sk-4",
            "last",
        ];
        let (kept, secret) = command(&words).masked(&Secrets::default());
        assert!(!kept.words.join(" ").contains("sk-"), "{kept:?}");
        assert_eq!((secret.len(), kept.is_whole()), (4, false));
        assert_eq!((kept.words[1].as_str(), kept.words[6].as_str()), ("--api-key", "last"));
    }

    #[test]
    fn whatever_changes_what_it_does_changes_what_it_is_known_by() {
        let one = command(&["python3", "scrape.py"]);
        assert_eq!(one.fingerprint(), one.clone().fingerprint());
        let others = [
            command(&["python3", "scrape.py", ""]),
            command(&["python3 scrape.py"]),
            KeptCommand { folder: "/tmp".into(), ..one.clone() },
            KeptCommand { pure: true, ..one.clone() },
            KeptCommand { persistent: true, ..one.clone() },
            KeptCommand { timeout_ms: Some(1), ..one.clone() },
            KeptCommand { memory_bytes_max: Some(1), ..one.clone() },
        ];
        for other in others {
            assert_ne!(one.fingerprint(), other.fingerprint(), "{other:?}");
        }
    }
}
