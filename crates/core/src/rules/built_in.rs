//! What is known of failures without anybody having said so: HTTP statuses, the names that clients give their errors, and what
//! the name of a type sounds like. All of it can be listed, so that it can be printed and documented.

use std::sync::LazyLock;

use serde::Serialize;

use super::{Rule, StatusRange, Verdict, clients};
use crate::failures::{FailureReport, Reason};

/// The reasons of HTTP statuses; of several that fit, the first holds.
const STATUSES: &[(Reason, &[StatusRange])] = &[
    (Reason::Blocked, &[StatusRange(401, 401), StatusRange(403, 403), StatusRange(407, 407), StatusRange(451, 451)]),
    (Reason::NotFound, &[StatusRange(404, 404), StatusRange(410, 410)]),
    (Reason::Timeout, &[StatusRange(408, 408), StatusRange(504, 504)]),
    (Reason::RateLimited, &[StatusRange(429, 429)]),
    (Reason::ServerError, &[StatusRange(500, 599)]),
    (Reason::RejectedInput, &[StatusRange(400, 499)]),
];

/// What the name of a type sounds like, for those that no client is known to have.
const TYPES: &[(Reason, &str)] = &[
    (Reason::Timeout, r"(?i)time(d)?_?out"),
    (Reason::Dns, r"(?i)name_?resolution|gaierror|dns"),
    (Reason::Tls, r"(?i)ssl|tls|certificate"),
    (Reason::Network, r"(?i)connection|protocolerror|networkerror|incompleteread"),
    (Reason::MalformedPayload, r"(?i)jsondecode|xmlsyntax|parseerror|unicodedecode"),
    (Reason::SchemaValidation, r"(?i)validationerror|selectornotfound|schemaerror"),
];

/// What is known by itself to have a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Known {
    /// The reason.
    pub reason: Reason,
    /// What has it: statuses, names or patterns.
    pub by: Vec<String>,
}

/// The statuses whose reason is known; of several that fit, the first holds.
pub fn known_statuses() -> Vec<Known> {
    let listed = |ranges: &[StatusRange]| ranges.iter().map(ToString::to_string).collect();
    STATUSES.iter().map(|(reason, ranges)| Known { reason: *reason, by: listed(ranges) }).collect()
}

/// The codes and types of errors, as clients name them, whose reason is known; each has one.
pub fn known_names() -> Vec<Known> {
    let listed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    clients::NAMES.iter().map(|(reason, names)| Known { reason: *reason, by: listed(names) }).collect()
}

/// Patterns for the types of errors that are not known by name; of several that fit, the first holds.
pub fn known_types() -> Vec<Known> {
    TYPES.iter().map(|(reason, pattern)| Known { reason: *reason, by: vec![(*pattern).to_owned()] }).collect()
}

/// What is known, most specific first: a status, a name that a client gave the error, and what the name of a type sounds like.
pub(super) fn verdict(report: &FailureReport) -> Option<Verdict> {
    let (by_status, by_type) = &*RULES;
    if let (None, Some(status)) = (report.http_status, clients::status(report)) {
        return verdict(&FailureReport { http_status: Some(status), ..report.clone() });
    }
    let first = |rules: &[Rule]| rules.iter().find(|rule| rule.matches(report)).map(|rule| rule.verdict(report));
    let by_name = || clients::reason(report).map(Verdict::from_reason);
    first(by_status).or_else(by_name).or_else(|| first(by_type))
}

/// The tables as rules: by status and by type.
static RULES: LazyLock<(Vec<Rule>, Vec<Rule>)> = LazyLock::new(|| {
    let by_status =
        STATUSES.iter().map(|(reason, ranges)| Rule { status: ranges.to_vec(), ..Rule::for_reason(*reason) });
    let by_type = TYPES.iter().map(|(reason, pattern)| Rule {
        error_type: Some(pattern.parse().expect("the built-in patterns are valid")),
        ..Rule::for_reason(*reason)
    });
    (by_status.collect(), by_type.collect())
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::classify;

    #[test]
    fn what_is_listed_is_what_is_decided() {
        for Known { reason, by } in known_names() {
            for name in by {
                let report = FailureReport::message("x").with_code(&name);
                assert_eq!(classify(&[], &report).reason, reason, "{name}");
            }
        }
        for Known { reason, by } in known_statuses() {
            for status in by {
                let last = status.split('-').next_back().and_then(|status| status.parse().ok());
                let report = FailureReport { http_status: last, ..FailureReport::default() };
                assert_eq!(classify(&[], &report).reason, reason, "{status}");
            }
        }
        assert_eq!(known_types().len(), RULES.1.len());
    }
}
