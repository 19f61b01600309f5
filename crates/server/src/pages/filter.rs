//! Which letters, as addresses, forms and commands say it. Names are those of the flags of the command line.

use maud::{Markup, html};
use redrive::contract::CauseView;
use redrive_core::time::Timestamp;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::parts::{flag, with_query, without_cursor};
use crate::asked::instant;
use crate::error::ApiError;

/// The names, in the order in which they are shown.
pub const NAMES: [&str; 11] =
    ["pipeline", "reason", "code", "target", "cause", "proxy", "gate", "round", "since", "until", "text"];

/// What letters have in common, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LetterFilter(Vec<(&'static str, String)>);

impl LetterFilter {
    /// What a query or a form says.
    pub fn of(fields: &Fields) -> Self {
        Self(NAMES.into_iter().filter_map(|name| Some((name, fields.one(name)?.to_owned()))).collect())
    }

    /// Letters of a cause, which is one of a pipeline.
    pub fn of_cause(cause: &CauseView) -> Self {
        Self(vec![("pipeline", cause.pipeline.to_string()), ("cause", cause.id.to_string())])
    }

    /// The same with times that no longer move with the clock, and without letters that die from now on.
    pub fn frozen(&self, now: Timestamp) -> Result<Self, ApiError> {
        let mut frozen = self.clone();
        for (name, value) in &mut frozen.0 {
            if matches!(*name, "since" | "until") {
                *value = instant(name, Some(value), now)?.unwrap_or(now).min(now).to_string();
            }
        }
        if frozen.get("until").is_none() {
            frozen.0.push(("until", now.to_string()));
        }
        Ok(frozen)
    }

    /// What is said of one name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The names that something is said of.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }

    /// Whether it lets everything through.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same, but for one name.
    pub fn with(&self, name: &'static str, value: &str) -> Self {
        let mut pairs: Vec<_> = self.0.iter().filter(|(known, _)| *known != name).cloned().collect();
        pairs.push((name, value.to_owned()));
        Self(pairs)
    }

    /// As the fields of a request to the API.
    pub fn to_json(&self) -> Map<String, Value> {
        self.0.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect()
    }

    /// As the query of an address.
    pub fn to_query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }

    /// As flags of a command.
    pub fn flags(&self) -> String {
        let flags = self.0.iter().map(|(name, value)| flag(name, value));
        flags.collect()
    }

    /// As fields of a form.
    pub fn carried(&self) -> Markup {
        html! { @for (name, value) in &self.0 { input type="hidden" name=(name) value=(value); } }
    }

    /// What is filtered by, each with a link that drops it.
    pub fn chips(&self, here: &str) -> Markup {
        let here = without_cursor(here);
        html! {
            @for (name, value) in &self.0 {
                span.chip {
                    span { (name) } " " bdi { (value) }
                    a href=(with_query(&here, name, None)) aria-label={ "Drop the filter " (name) } { "×" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_the_same_in_addresses_and_commands() {
        let filter = LetterFilter::of(&Fields::read(b"text=a+b&reason=dns&sort=x&since="));
        assert_eq!(filter.to_query(), "reason=dns&text=a+b");
        assert_eq!(filter.flags(), " --reason dns --text 'a b'");
        assert_eq!(filter.with("reason", "tls").flags(), " --text 'a b' --reason tls");
        assert_eq!(LetterFilter::of(&Fields::read(filter.to_query().as_bytes())), filter);
        assert!(LetterFilter::of(&Fields::default()).is_empty());
    }

    #[test]
    fn a_frozen_filter_finds_nobody_who_dies_later() {
        let now = Timestamp::from_millis(7_200_000);
        let frozen = LetterFilter::of(&Fields::read(b"reason=dns&since=1h")).frozen(now).expect("frozen");
        assert_eq!(frozen.get("since"), Some("1970-01-01T01:00:00.000Z"));
        assert_eq!(frozen.get("until"), Some("1970-01-01T02:00:00.000Z"));
        assert_eq!(frozen.frozen(now).expect("frozen"), frozen, "once more changes nothing");
    }
}
