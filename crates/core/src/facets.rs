//! What letters of a cause have in common, and what is different about them: shares among those who died beside shares among those
//! who were done, each with its numbers.

use serde::{Deserialize, Serialize};

use crate::alerts::Share;
use crate::dead::foreign::SOME_PROXY;
use crate::failures::Failure;

/// How many values of a kind are counted by themselves for each cause; what comes after that counts as [`OTHERS`].
pub const VALUES_MAX: u32 = 200;

/// The value under which all others are counted once there are too many.
pub const OTHERS: &str = "…";

/// From so many failures on something is said about them.
pub const FAILURES_MIN: u64 = 5;

/// From so wide a gap between shares on it is said: ten points.
pub const GAP_MIN: f64 = 0.1;

/// The longest value that is counted by itself, in bytes.
const VALUE_BYTES_MAX: usize = 200;

/// By what those who died are counted, besides the input fields that their pipeline tracks.
pub mod kinds {
    /// The target.
    pub const TARGET: &str = "target";
    /// The label of the proxy.
    pub const PROXY: &str = "proxy";
    /// The HTTP status.
    pub const STATUS: &str = "status";
    /// Where in the attempt it failed.
    pub const STAGE: &str = "stage";
    /// The version of the definition.
    pub const RULES: &str = "rules";

    /// The kind of a tracked field of the input.
    pub fn input(field: &str) -> String {
        format!("input.{field}")
    }
}

/// The facets of a job that died, as its failure tells them: each kind with its value, which is empty where it has none.
pub fn of_death(target: Option<&str>, failure: &Failure) -> [(&'static str, String); 5] {
    let status = failure.http_status.map(|status| status.to_string());
    let rules = failure.definition.as_ref().map(|version| version.as_str().to_owned());
    [
        (kinds::TARGET, value(target.unwrap_or_default())),
        (kinds::PROXY, value(failure.proxy.as_deref().unwrap_or_default())),
        (kinds::STATUS, status.unwrap_or_default()),
        (kinds::STAGE, value(failure.stage.as_deref().unwrap_or_default())),
        (kinds::RULES, rules.unwrap_or_default()),
    ]
}

/// A value as it is counted.
pub fn value(text: &str) -> String {
    let mut end = text.len().min(VALUE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Whether a value may be no more than the beginning of the one that was counted.
pub fn is_cut(value: &str) -> bool {
    value.len() + char::MAX.len_utf8() > VALUE_BYTES_MAX
}

/// How many have a value of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FacetCount {
    /// By what they are counted.
    pub kind: String,
    /// The value; empty for those that have none.
    pub value: String,
    /// How many.
    pub count: u64,
}

impl FacetCount {
    /// Returns whether the value is known. An input may well have an empty text; anything else that is empty was not reported. A proxy
    /// whose label was masked could be any.
    pub fn is_known(&self) -> bool {
        let is_masked = self.kind == kinds::PROXY && self.value == SOME_PROXY;
        let is_empty = self.value.is_empty() && !self.kind.starts_with("input.");
        !is_masked && !is_empty
    }
}

/// A kind of value that was not reported of all failures, or not of all successes. What is not known is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// The kind.
    pub kind: String,
    /// Counts failures without a value.
    pub failures: u64,
    /// Counts successes without a value.
    pub successes: u64,
}

/// Returns which kinds that could be compared are not known of everybody, out of so many failures and successes.
pub fn unknown((died, failures): (&[FacetCount], u64), (done, successes): (&[FacetCount], u64)) -> Vec<Unknown> {
    let known = |counts: &[FacetCount], kind: &str| -> u64 {
        counts.iter().filter(|count| count.kind == kind && count.is_known()).map(|count| count.count).sum()
    };
    let one = |kind: &str| Unknown {
        kind: kind.to_owned(),
        failures: failures.saturating_sub(known(died, kind)),
        successes: successes.saturating_sub(known(done, kind)),
    };
    let all = [kinds::TARGET, kinds::PROXY, kinds::RULES].map(one).into_iter();
    all.filter(|one| one.failures > 0 || one.successes > 0).collect()
}

/// Something that is more frequent among those who died than among those who were done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// What is compared.
    pub kind: String,
    /// The value.
    pub value: String,
    /// Of those who died, those with the value.
    pub failures: Share,
    /// Of those who were done, those with the value; where there were too many values to count each, as many as may have it.
    pub successes: Share,
    /// By how much the least that the share among failures may be, at 95 %, is above the most that the share among successes may be:
    /// what they are ranked by.
    pub gap: f64,
}

/// What is different about those who died: values whose share among them is above that among those who were done by ten points or more,
/// and more than chance may explain; the widest gap first. Nothing with fewer than five failures. Shares are of those whose value is known.
pub fn differences(died: &[FacetCount], done: &[FacetCount]) -> Vec<Difference> {
    let total = |counts: &[FacetCount], kind: &str| -> u64 {
        counts.iter().filter(|count| count.kind == kind && count.is_known()).map(|count| count.count).sum()
    };
    let mut found: Vec<Difference> = died
        .iter()
        .filter(|count| count.value != OTHERS && count.is_known())
        .filter_map(|FacetCount { kind, value, count }| {
            let (all_died, all_done) = (total(died, kind), total(done, kind));
            // Others may have it too: nothing is said to be rare that was only not counted.
            let same = done.iter().filter(|done| done.kind == *kind && (done.value == *value || done.value == OTHERS));
            let (failures, successes) =
                (Share::new(*count, all_died), Share::new(same.map(|done| done.count).sum(), all_done));
            let is_enough = all_died >= FAILURES_MIN && all_done > 0;
            let gap = failures.at_least() - successes.at_most();
            let is_wide = failures.value() - successes.value() >= GAP_MIN && gap > 0.0;
            let (kind, value) = (kind.clone(), value.clone());
            (is_enough && is_wide).then_some(Difference { kind, value, failures, successes, gap })
        })
        .collect();
    found.sort_by(|a, b| b.gap.total_cmp(&a.gap).then_with(|| (&a.kind, &a.value).cmp(&(&b.kind, &b.value))));
    found
}

/// With whom those who died are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Tasks that were done in the hours in which others died.
    SameHours,
    /// Tasks that were done in the 24 hours before the first died, since in the same hours too few were.
    DayBefore,
}

/// How many must have been done in the same hours for those to be compared with.
pub const BASELINE_MIN: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn count(kind: &str, value: &str, count: u64) -> FacetCount {
        FacetCount { kind: kind.into(), value: value.into(), count }
    }

    #[test]
    fn the_widest_gap_comes_first_and_small_ones_are_left_out() {
        let died = [
            count("target", "a", 60),
            count("proxy", "p1", 40),
            count("proxy", "p2", 20),
            count("status", "200", 60),
            count("input.shop", "…", 60),
        ];
        let done = [
            count("target", "a", 7),
            count("target", "b", 48),
            count("proxy", "p1", 30),
            count("proxy", "p2", 25),
            count("input.shop", "x", 55),
        ];
        let found = differences(&died, &done);
        let named: Vec<_> = found.iter().map(|d| (d.kind.as_str(), d.value.as_str())).collect();
        assert_eq!(
            named,
            [("target", "a")],
            "proxies may differ by chance, statuses were not counted, others are nobody"
        );
        assert_eq!((found[0].failures, found[0].successes), (Share::new(60, 60), Share::new(7, 55)));
        assert!((found[0].gap - 0.6996).abs() < 0.01, "{}", found[0].gap);
        assert!(differences(&[count("target", "a", 4)], &[count("target", "b", 99)]).is_empty(), "four are too few");
        assert!(differences(&[count("target", "a", 99)], &[]).is_empty(), "compared with nobody");
    }

    #[test]
    fn what_was_not_counted_by_itself_may_be_anything() {
        let died = [count("input.shop", "a", 60)];
        let done = |others: u64| [count("input.shop", "b", 100 - others), count("input.shop", OTHERS, others)];
        assert_eq!(differences(&died, &done(10))[0].successes, Share::new(10, 100));
        assert!(differences(&died, &done(95)).is_empty(), "all of them may be it");
    }

    #[test]
    fn values_that_were_not_reported_are_unknown_and_never_compared() {
        let died = [count("proxy", "", 40), count("proxy", "de-3", 20), count("target", "a", 60)];
        let done =
            [count("proxy", "", 90), count("proxy", "de-3", 5), count("proxy", "us-1", 5), count("target", "b", 100)];
        let found = differences(&died, &done);
        let proxy = found.iter().find(|one| one.kind == "proxy").expect("a difference");
        assert_eq!((proxy.value.as_str(), proxy.failures), ("de-3", Share::new(20, 20)));
        assert_eq!(proxy.successes, Share::new(5, 10), "of those that have one");
        let told = |kind: &str, failures, successes| Unknown { kind: kind.into(), failures, successes };
        assert_eq!(unknown((&died, 60), (&done, 100)), [told("proxy", 40, 90), told("rules", 60, 100)]);
        for (died, done) in [("", "us-1"), ("de-3", ""), ("proxy", "us-1"), ("de-3", "proxy")] {
            let found = differences(&[count("proxy", died, 60)], &[count("proxy", done, 60)]);
            assert_eq!(found, [], "{died:?} and {done:?}");
        }
        let found = differences(&[count("input.q", "", 60)], &[count("input.q", "x", 60)]);
        assert_eq!(found.len(), 1, "an input may have an empty text");
    }

    #[test]
    fn values_are_cut_between_characters() {
        assert!(value(&"é".repeat(500)).len() <= 200);
        assert_eq!(value("p1"), "p1");
        assert!(!is_cut("p1") && is_cut(&value(&"é".repeat(500))) && is_cut(&value(&"€".repeat(500))));
    }
}
