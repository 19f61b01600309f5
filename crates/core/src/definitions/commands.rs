//! Commands that were given on a command line, kept so that what they left dead can be replayed without repeating them.
//!
//! Whoever can write a store could put any command into it. So a kept command is known by a fingerprint, and runs only where the
//! person who asks has run the very same before, or says that the store is to be trusted.

use serde::{Deserialize, Serialize};

use super::{DefinitionVersion, MASK, shortened};
use crate::secrets::Secrets;

/// A command as it was given, with all that decides what it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCommand {
    /// The program and its arguments. If anything of it may be secret only what is harmless for certain is there: such a command cannot be run
    /// again as it is kept.
    pub words: Vec<String>,
    /// The folder that it ran in.
    pub folder: String,
    /// Whether it works from a saved payload alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pure: bool,
    /// Whether it runs for many jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub persistent: bool,
    /// Whether a job that succeeds without a result has failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_result: bool,
    /// How long one attempt may take, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most memory that it may use, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
}

impl KeptCommand {
    /// The same as it is kept, and the arguments that look secret, as far as they may be shown. If there are any, it is kept for
    /// people to recognise, not to be run again.
    pub fn masked(self, secrets: &Secrets) -> (Self, Vec<String>) {
        let words = secrets.mask_words(&self.words);
        let mut found = Vec::new();
        for (place, masked) in words.iter().enumerate().filter(|(place, masked)| self.words[*place] != **masked) {
            let flag = place.checked_sub(1).map(|before| &words[before]).filter(|word| word.starts_with('-'));
            found.push(flag.map_or_else(|| masked.clone(), |flag| format!("{flag} {masked}")));
        }
        let words = if found.is_empty() { words } else { shortened(words) };
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

/// The command that letters died of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOf {
    /// None is kept.
    Unknown,
    /// All of them died of the same, in the same folder.
    One(KeptCommand),
    /// They died of several, or of some it is not known what they died of: none is that of all.
    Several(Vec<Option<KeptCommand>>),
}

/// Decides which command letters died of that were last tried with these versions, of what is kept of each version.
pub fn command_of(versions: &[Option<DefinitionVersion>], kept: &[(DefinitionVersion, Vec<KeptCommand>)]) -> CommandOf {
    let mut commands: Vec<Option<KeptCommand>> = Vec::new();
    for version in versions {
        let known = kept.iter().filter(|(known, _)| Some(known) == version.as_ref()).flat_map(|(_, commands)| commands);
        let mut known: Vec<_> = known.cloned().map(Some).collect();
        if known.is_empty() {
            known.push(None);
        }
        known.retain(|command| !commands.contains(command));
        commands.append(&mut known);
    }
    match commands.as_mut_slice() {
        [] | [None] => CommandOf::Unknown,
        [Some(command)] => CommandOf::One(std::mem::take(command)),
        _ => CommandOf::Several(commands),
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
        assert_eq!((kept.words[1].as_str(), kept.words[6].as_str()), ("--api-key", MASK), "nothing is kept to be run");
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
            KeptCommand { require_result: true, ..one.clone() },
            KeptCommand { persistent: true, ..one.clone() },
            KeptCommand { timeout_ms: Some(1), ..one.clone() },
            KeptCommand { memory_bytes_max: Some(1), ..one.clone() },
        ];
        for other in others {
            assert_ne!(one.fingerprint(), other.fingerprint(), "{other:?}");
        }
    }

    #[test]
    fn what_is_in_doubt_is_not_kept_and_told_of() {
        for words in [
            ["curl", "-u", "bob:hunter2"],
            ["scrape", "--proxy", "10.0.0.1:80:bob:hunter2"],
            ["scrape", "--client-key", "hunter2"],
            ["scrape", "--password", "-hunter2"],
            ["scrape", "-p", "hunter2"],
        ] {
            let (kept, told) = command(&words).masked(&Secrets::default());
            assert!(!kept.is_whole() && !format!("{kept:?}{told:?}").contains("hunter2"), "{kept:?} {told:?}");
            assert_eq!(told, [format!("{} ***", words[1])]);
        }
    }

    #[test]
    fn letters_have_a_command_only_if_all_died_of_the_same() {
        let version = |text: &str| DefinitionVersion::new(text);
        let (one, other) = (command(&["a"]), command(&["b"]));
        let moved = KeptCommand { folder: "/tmp".into(), ..one.clone() };
        let kept = [
            (version("1"), vec![one.clone()]),
            (version("2"), vec![other.clone()]),
            (version("3"), vec![one.clone()]),
            (version("4"), vec![one.clone(), moved.clone()]),
            (version("5"), vec![]),
        ];
        let of = |versions: &[Option<&str>]| {
            let versions: Vec<_> = versions.iter().map(|text| text.map(DefinitionVersion::new)).collect();
            command_of(&versions, &kept)
        };
        assert_eq!(of(&[Some("1")]), CommandOf::One(one.clone()));
        assert_eq!(of(&[Some("1"), Some("3")]), CommandOf::One(one.clone()));
        assert_eq!(of(&[Some("1"), Some("2")]), CommandOf::Several(vec![Some(one.clone()), Some(other)]));
        assert_eq!(of(&[Some("4")]), CommandOf::Several(vec![Some(one.clone()), Some(moved)]), "in two folders");
        assert_eq!(of(&[Some("1"), None]), CommandOf::Several(vec![Some(one), None]));
        for unknown in [&[][..], &[None], &[Some("5")], &[Some("6"), None]] {
            assert_eq!(of(unknown), CommandOf::Unknown, "{unknown:?}");
        }
    }
}
