//! What a provider's codes mean: a table that ships as data, exact matches only. An unknown code goes to a person.

use std::collections::BTreeMap;

use redrive_core::dead::Gate;
use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::rules::Rule;
use serde::{Deserialize, Serialize};

/// The tables that ship with Redrive: name, whose codes they have, and the table.
const BUILT_IN: [(&str, &str, &str); 2] = [
    ("in-res", "providers with in.php and res.php", include_str!("codes/in-res.json")),
    ("create-task", "providers with createTask and getTaskResult", include_str!("codes/create-task.json")),
];

/// What one code means.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Meaning {
    /// Why.
    pub reason: Reason,
    /// What to do; by default what the reason says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disposition: Option<Disposition>,
    /// Whether it may be replayed; by default what the reason says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// Whether the whole provider is held: our account with it needs a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    /// Seconds to wait at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_secs: Option<f64>,
    /// Whether the task is over for the provider, so that asking for it again is of no use: its id is unknown, has expired,
    /// or was given up. By default so if it is `unsolvable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<bool>,
}

impl Meaning {
    /// What happens to the job: what the table says, or else its reason.
    pub fn disposition(&self) -> Disposition {
        self.disposition.unwrap_or(self.reason.defaults().0)
    }

    /// Whether the job may be replayed once dead: what the table says, or else its reason.
    pub fn gate(&self) -> Gate {
        self.gate.unwrap_or(self.reason.defaults().1)
    }

    /// Whether the task is over for the provider.
    pub fn is_spent(&self) -> bool {
        self.spent.unwrap_or(self.reason == Reason::Unsolvable)
    }
}

/// A table of codes.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Codes(BTreeMap<String, Meaning>);

impl Codes {
    /// A table that ships with Redrive.
    pub fn built_in(name: &str) -> Option<Self> {
        let (.., text) = BUILT_IN.iter().find(|(known, ..)| *known == name)?;
        Some(serde_json::from_str(text).expect("the tables that ship are valid"))
    }

    /// The names of the tables that ship with Redrive.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, ..)| *name)
    }

    /// Whose codes a table that ships with Redrive has.
    pub fn built_in_for(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(known, ..)| *known == name).map(|(_, whose, _)| *whose)
    }

    /// The codes and what each means, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Meaning)> {
        self.0.iter().map(|(code, meaning)| (code.as_str(), meaning))
    }

    /// Returns the table as rules, one for each code.
    pub fn rules(&self) -> Vec<Rule> {
        let rule = |(code, meaning): (&String, &Meaning)| Rule {
            code: vec![code.clone()],
            disposition: meaning.disposition,
            gate: meaning.gate,
            ..Rule::for_reason(meaning.reason)
        };
        self.0.iter().map(rule).collect()
    }

    /// Returns whether the table has a code.
    pub fn knows(&self, code: &str) -> bool {
        self.0.contains_key(code)
    }

    /// Whether a code means that a task's id is spent. What nobody knows does not: its task may have been paid for.
    pub fn is_spent(&self, code: &str) -> bool {
        self.0.get(code).is_some_and(Meaning::is_spent)
    }

    /// What a code means, as a failure.
    pub fn report(&self, code: &str) -> FailureReport {
        let report = match self.0.get(code) {
            Some(meaning) => FailureReport {
                reason: Some(meaning.reason),
                disposition: meaning.disposition,
                gate: meaning.gate,
                hold: meaning.hold,
                retry_after_secs: meaning.wait_secs,
                ..FailureReport::default()
            },
            None => FailureReport {
                reason: Some(Reason::HandlerError),
                disposition: Some(Disposition::Dead),
                gate: Some(Gate::Review),
                ..FailureReport::default()
            },
        };
        report.with_code(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_that_ship_say_what_they_should() {
        for name in Codes::built_in_names() {
            let codes = Codes::built_in(name).expect("a table");
            let meaning = |code: &str| {
                let report = codes.report(code);
                (report.reason.expect("a reason"), report.disposition, report.hold)
            };
            assert_eq!(meaning("ERROR_NO_SLOT_AVAILABLE"), (Reason::NoCapacity, None, false), "{name}");
            assert_eq!(meaning("ERROR_CAPTCHA_UNSOLVABLE"), (Reason::Unsolvable, None, false), "{name}");
            for holding in ["ERROR_KEY_DOES_NOT_EXIST", "ERROR_ZERO_BALANCE"] {
                assert_eq!(meaning(holding), (Reason::Misconfigured, None, true), "{name} {holding}");
            }
            assert_eq!(meaning("ERROR_MOON_PHASE"), (Reason::HandlerError, Some(Disposition::Dead), false), "{name}");
            assert_eq!(codes.report("ERROR_MOON_PHASE").gate, Some(Gate::Review));
            assert!(codes.is_spent("ERROR_CAPTCHA_UNSOLVABLE"), "{name}: asking again gives the same answer");
            let unknown = if name == "in-res" { "ERROR_WRONG_CAPTCHA_ID" } else { "ERROR_NO_SUCH_CAPCHA_ID" };
            assert!(codes.is_spent(unknown), "{name}");
            for alive in ["ERROR_ZERO_BALANCE", "ERROR_TOO_MUCH_REQUESTS", "ERROR_IP_BLOCKED", "ERROR_MOON_PHASE"] {
                assert!(!codes.is_spent(alive), "{name}: {alive} is about us, not about the task");
            }
        }
    }
}
