//! Classification: rules as data, first match wins, the user's own above the built-in ones.
//!
//! A rule matches on what a handler reported and says the reason, what to do and whether a person must look.

mod built_in;
mod clients;

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};

use crate::dead::Gate;
use crate::failures::{Disposition, FailureReport, Reason};

pub use self::built_in::{Known, known_names, known_statuses, known_types};

/// What was decided about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Why.
    pub reason: Reason,
    /// What to do.
    pub disposition: Disposition,
    /// Whether it may be replayed once dead.
    pub gate: Gate,
}

impl Verdict {
    /// Returns what a reason says by itself.
    const fn from_reason(reason: Reason) -> Self {
        let (disposition, gate) = reason.defaults();
        Self { reason, disposition, gate }
    }
}

/// A rule: if all that it names matches, its verdict holds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// HTTP statuses: `403`, `"5xx"` or `"500-599"`.
    #[serde(default)]
    pub status: Vec<StatusRange>,
    /// Error codes, exact.
    #[serde(default)]
    pub code: Vec<String>,
    /// A pattern in the error's type.
    pub error_type: Option<Pattern>,
    /// A pattern in the message.
    pub message: Option<Pattern>,
    /// The stage, exact.
    pub stage: Option<String>,
    /// A pattern in the beginning of the response body.
    pub body: Option<Pattern>,
    /// The reason it then has; by default that of a failure that no rule matches. Only a rule that takes failures for results needs none.
    pub reason: Option<Reason>,
    /// What to do; by default what the reason says.
    pub disposition: Option<Disposition>,
    /// Whether it may be replayed; by default what the reason says.
    pub gate: Option<Gate>,
    /// The result of a job that is done by this rule; by default `{"gone": true}`.
    pub result: Option<Value>,
}

impl Rule {
    /// A rule for a reason that matches nothing yet.
    pub const fn for_reason(reason: Reason) -> Self {
        Self {
            status: Vec::new(),
            code: Vec::new(),
            error_type: None,
            message: None,
            stage: None,
            body: None,
            reason: Some(reason),
            disposition: None,
            gate: None,
            result: None,
        }
    }

    /// Whether the rule names anything to match on; one that does not would swallow every failure.
    pub const fn is_empty(&self) -> bool {
        self.status.is_empty()
            && self.code.is_empty()
            && self.error_type.is_none()
            && self.message.is_none()
            && self.stage.is_none()
            && self.body.is_none()
    }

    pub(crate) fn matches(&self, report: &FailureReport) -> bool {
        let status = report.http_status;
        let fits_status =
            self.status.is_empty() || self.status.iter().any(|range| status.is_some_and(|s| range.has(s)));
        let fits_code = self.code.is_empty() || report.code.as_ref().is_some_and(|code| self.code.contains(code));
        let fits_stage = self.stage.is_none() || self.stage == report.stage;
        let fits = |pattern: &Option<Pattern>, text: Option<&str>| match pattern {
            Some(pattern) => text.is_some_and(|text| pattern.0.is_match(text)),
            None => true,
        };
        !self.is_empty()
            && fits_status
            && fits_code
            && fits_stage
            && fits(&self.error_type, report.error_type.as_deref())
            && fits(&self.message, Some(&report.message))
            && fits(&self.body, report.body.as_deref())
    }

    /// Returns true if it lacks a reason and needs one: a rule that takes failures for results needs none.
    pub fn lacks_reason(&self) -> bool {
        self.reason.is_none() && self.disposition != Some(Disposition::Done)
    }

    fn verdict(&self, report: &FailureReport) -> Verdict {
        let own = self.reason.map_or_else(|| verdict_without_rules(report), Verdict::from_reason);
        Verdict { disposition: self.disposition.unwrap_or(own.disposition), gate: self.gate.unwrap_or(own.gate), ..own }
    }
}

/// Finds out why an attempt failed and what to do. The user's rules come first, then what the handler itself said, then
/// the built-in rules; what nobody knows is a `handler_error`.
pub fn classify(rules: &[Rule], report: &FailureReport) -> Verdict {
    if let Some(rule) = rules.iter().find(|rule| rule.matches(report)) {
        return rule.verdict(report);
    }
    let verdict = verdict_without_rules(report);
    Verdict {
        disposition: report.disposition.unwrap_or(verdict.disposition),
        gate: report.gate.unwrap_or(verdict.gate),
        ..verdict
    }
}

fn verdict_without_rules(report: &FailureReport) -> Verdict {
    let unknown = || Verdict::from_reason(Reason::HandlerError);
    report.reason.map_or_else(|| built_in::verdict(report).unwrap_or_else(unknown), Verdict::from_reason)
}

/// Returns the result of a failed attempt whose failure counts as a result, such as a page that is gone.
pub fn result_of_failure(rules: &[Rule], report: &FailureReport) -> Option<Value> {
    if classify(rules, report).disposition != Disposition::Done {
        return None;
    }
    let rule = rules.iter().find(|rule| rule.matches(report));
    Some(rule.and_then(|rule| rule.result.clone()).unwrap_or_else(|| json!({"gone": true})))
}

/// Returns the reason that the breaker of the target counts.
///
/// An error of the user's code may hide the response that caused it: code that expects a page fails on a 503. If the report
/// has the status of a failed target, that is the reason here, unless one of the user's rules decided.
pub fn reason_of_target(rules: &[Rule], report: &FailureReport, verdict: Verdict) -> Reason {
    let may_hide = matches!(verdict.reason, Reason::HandlerError | Reason::MalformedPayload | Reason::SchemaValidation);
    if !may_hide || rules.iter().any(|rule| rule.matches(report)) {
        return verdict.reason;
    }
    let status = FailureReport { http_status: report.http_status, ..FailureReport::default() };
    let by_status = built_in::verdict(&status).map(|verdict| verdict.reason).filter(|reason| reason.is_about_target());
    by_status.unwrap_or(verdict.reason)
}

/// A regular expression, matched in linear time.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// What it finds first in a text.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| found.as_str())
    }
}

impl std::str::FromStr for Pattern {
    type Err = regex::Error;

    fn from_str(text: &str) -> Result<Self, regex::Error> {
        Regex::new(text).map(Self)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| de::Error::custom(format!("{text:?} is not a pattern: {error}")))
    }
}

/// HTTP statuses from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange(u16, u16);

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(low, high) if low == high => write!(f, "{low}"),
            Self(low, high) => write!(f, "{low}-{high}"),
        }
    }
}

impl StatusRange {
    const fn has(self, status: u16) -> bool {
        self.0 <= status && status <= self.1
    }

    fn parse(text: &str) -> Option<Self> {
        let range = if let Some(class) = text.strip_suffix("xx") {
            let class: u16 = class.parse().ok()?;
            Self(class.checked_mul(100)?, class.checked_mul(100)? + 99)
        } else if let Some((low, high)) = text.split_once('-') {
            Self(low.trim().parse().ok()?, high.trim().parse().ok()?)
        } else {
            let status = text.parse().ok()?;
            Self(status, status)
        };
        (100 <= range.0 && range.0 <= range.1 && range.1 <= 599).then_some(range)
    }
}

impl<'de> Deserialize<'de> for StatusRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = StatusRange;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an HTTP status such as 403, \"5xx\" or \"500-599\"")
            }

            fn visit_i64<E: de::Error>(self, status: i64) -> Result<StatusRange, E> {
                self.visit_str(&status.to_string())
            }

            fn visit_u64<E: de::Error>(self, status: u64) -> Result<StatusRange, E> {
                self.visit_str(&status.to_string())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StatusRange, E> {
                StatusRange::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> FailureReport {
        FailureReport { http_status: Some(status), ..FailureReport::default() }
    }

    #[test]
    fn statuses_have_reasons() {
        let reason = |code| classify(&[], &status(code)).reason;
        for (code, expected) in [
            (401, Reason::Blocked),
            (403, Reason::Blocked),
            (407, Reason::Blocked),
            (451, Reason::Blocked),
            (404, Reason::NotFound),
            (410, Reason::NotFound),
            (408, Reason::Timeout),
            (504, Reason::Timeout),
            (429, Reason::RateLimited),
            (500, Reason::ServerError),
            (503, Reason::ServerError),
            (422, Reason::RejectedInput),
            (200, Reason::HandlerError),
        ] {
            assert_eq!(reason(code), expected, "{code}");
        }
    }

    #[test]
    fn a_blocked_target_goes_to_a_person() {
        let verdict = classify(&[], &status(403));
        assert_eq!((verdict.disposition, verdict.gate), (Disposition::Dead, Gate::Review));
    }

    #[test]
    fn the_users_rules_win_over_the_handler_and_the_first_over_the_second() {
        let rules: Vec<Rule> = serde_json::from_value(json!([
            {"status": ["5xx"], "message": "maintenance", "reason": "no_capacity", "disposition": "hold"},
            {"status": [503, "520-527"], "reason": "blocked"},
        ]))
        .expect("the rules are valid");
        let mut report = status(503);
        report.reason = Some(Reason::ServerError);
        assert_eq!(classify(&rules, &report).reason, Reason::Blocked);
        report.message = "down for maintenance".into();
        let verdict = classify(&rules, &report);
        assert_eq!((verdict.reason, verdict.disposition), (Reason::NoCapacity, Disposition::Hold));
        assert_eq!(classify(&rules, &status(522)).reason, Reason::Blocked);
        assert_eq!(classify(&rules, &status(500)).reason, Reason::ServerError);
    }

    #[test]
    fn the_handlers_word_holds_where_no_rule_speaks() {
        let report = FailureReport {
            disposition: Some(Disposition::Dead),
            gate: Some(Gate::Never),
            ..FailureReport::new(Reason::Timeout, "gave up")
        };
        let verdict = classify(&[], &report);
        assert_eq!(
            (verdict.reason, verdict.disposition, verdict.gate),
            (Reason::Timeout, Disposition::Dead, Gate::Never)
        );
    }

    #[test]
    fn failure_that_a_rule_calls_done_has_a_result() {
        let rules = |rule: Value| -> Vec<Rule> { serde_json::from_value(json!([rule])).expect("the rule is valid") };
        let done = json!({"status": [404, 410], "disposition": "done"});
        assert_eq!(result_of_failure(&rules(done.clone()), &status(410)), Some(json!({"gone": true})));
        assert_eq!(result_of_failure(&rules(done.clone()), &status(403)), None);
        assert_eq!(result_of_failure(&[], &status(404)), None, "by default it dies");
        let mut named = done;
        named["result"] = json!({"listed": false});
        assert_eq!(result_of_failure(&rules(named), &status(404)), Some(json!({"listed": false})));
    }

    #[test]
    fn codes_and_types_are_known() {
        let code = FailureReport::message("x").with_code("ECONNRESET");
        assert_eq!(classify(&[], &code).reason, Reason::Network);
        let by_type = |name: &str| {
            classify(&[], &FailureReport { error_type: Some(name.into()), ..FailureReport::default() }).reason
        };
        assert_eq!(by_type("requests.exceptions.ReadTimeout"), Reason::Timeout);
        assert_eq!(by_type("json.decoder.JSONDecodeError"), Reason::MalformedPayload);
        assert_eq!(by_type("SelectorNotFound"), Reason::SchemaValidation);
        assert_eq!(by_type("KeyError"), Reason::HandlerError);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            json!({"status": [99], "reason": "blocked"}),
            json!({"status": ["x"], "reason": "blocked"}),
            json!({"status": ["500-400"], "reason": "blocked"}),
            json!({"message": "(", "reason": "blocked"}),
            json!({"status": [403], "reason": "angry"}),
            json!({"statuss": [403], "reason": "blocked"}),
        ] {
            assert!(serde_json::from_value::<Rule>(bad.clone()).is_err(), "{bad}");
        }
        let rule: Rule =
            serde_json::from_value(json!({"status": [403]})).expect("its reason is asked for by the configuration");
        assert!(rule.lacks_reason() && !Rule { disposition: Some(Disposition::Done), ..rule }.lacks_reason());
        assert!(Rule::for_reason(Reason::Blocked).is_empty());
        assert_eq!(classify(&[Rule::for_reason(Reason::Blocked)], &status(200)).reason, Reason::HandlerError);
    }
}
