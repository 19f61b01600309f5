//! What is different about those who died, in words that pages and the command share.

use redrive::compare::{Differences, Uncompared};
use redrive_core::alerts::Share;
use redrive_core::facets::{Baseline, FAILURES_MIN, GAP_MIN, Unknown};

use super::figures::{count, counted};

/// Who is compared with whom.
pub fn against(different: &Differences) -> String {
    let failures = counted(different.failures as i64, "failure", "failures");
    let done = counted(different.successes as i64, "task", "tasks");
    match different.baseline {
        Baseline::SameHours => format!("{failures} against {done} done in the same hours"),
        Baseline::DayBefore => format!("{failures} against {done} done in the 24 hours before the first"),
    }
}

/// Why nothing is found to be different.
pub fn nothing(different: &Differences) -> String {
    match (different.failures, different.successes) {
        (failures, _) if failures < FAILURES_MIN => format!("Something is said from {FAILURES_MIN} failures on."),
        (_, 0) => "No task was done in the same hours, nor in the 24 hours before: there is nothing to compare with."
            .to_owned(),
        _ => match different.alike.is_empty() {
            true => "Nothing that is counted sets them apart.".to_owned(),
            false => format!("Nothing sets them apart: {} are alike on both sides.", different.alike.join(", ")),
        },
    }
}

/// What is known of those who died only, if anything is.
pub fn of_failures_only(different: &Differences) -> Option<String> {
    let one = |Uncompared { kind, value, failures }: &Uncompared| {
        let (part, whole) = (count(failures.part as i64), count(failures.whole as i64));
        format!("{} {value} ({part} of {whole})", label(kind))
    };
    let all: Vec<String> = different.uncompared.iter().map(one).collect();
    let is_enough = !all.is_empty() && different.failures >= FAILURES_MIN;
    is_enough.then(|| format!("Of failures only, not counted of tasks that are done: {}.", all.join(", ")))
}

/// Says what was not reported of all of them, and is in no share.
pub fn unknown(different: &Differences) -> Option<String> {
    let side = |unknown: u64, all: u64, who: &str| match unknown {
        0 => None,
        unknown if unknown == all => Some(format!("all {} {who}", count(all as i64))),
        unknown => Some(format!("{} of {} {who}", count(unknown as i64), count(all as i64))),
    };
    let one = |Unknown { kind, failures, successes }: &Unknown| {
        let sides =
            [side(*failures, different.failures, "failures"), side(*successes, different.successes, "successes")];
        format!("{} of {}", label(kind), sides.into_iter().flatten().collect::<Vec<_>>().join(" and "))
    };
    let all: Vec<String> = different.unknown.iter().map(one).collect();
    let is_enough = !all.is_empty() && different.failures >= FAILURES_MIN;
    is_enough.then(|| format!("Unknown, since not reported, and left out: {}.", all.join("; ")))
}

/// Of whom a share is: not all have a value of every kind.
pub fn of_whom(share: Share, all: u64, who: &str) -> String {
    if share.whole < all { format!("{who} that have one") } else { who.to_owned() }
}

/// How far the bounds of two shares are apart.
pub fn points(gap: f64) -> String {
    match (gap * 100.0).round() as i64 {
        0 => "under 1 point".to_owned(),
        points => counted(points, "point", "points"),
    }
}

/// What is said to be different, and in which order.
pub fn rule() -> String {
    format!(
        "Shown from {FAILURES_MIN} failures on, where the share of failures is {:.0} points or more above that of successes and the 95 % \
         bounds of both are apart; ranked by the gap between these bounds.",
        GAP_MIN * 100.0
    )
}

/// What a kind is called.
pub fn label(kind: &str) -> String {
    kind.strip_prefix("input.").map_or_else(|| kind.to_owned(), |field| format!("input {field}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reported_is_said_to_be_unknown() {
        let of = |failures| Differences {
            failures,
            successes: 1_200,
            baseline: Baseline::SameHours,
            found: Vec::new(),
            alike: Vec::new(),
            uncompared: Vec::new(),
            unknown: vec![
                Unknown { kind: "proxy".to_owned(), failures: 2, successes: 1_200 },
                Unknown { kind: "rules".to_owned(), failures: 6, successes: 0 },
            ],
        };
        let told = "Unknown, since not reported, and left out: proxy of 2 of 6 failures and all 1,200 successes; rules of all 6 failures.";
        assert_eq!(unknown(&of(6)).as_deref(), Some(told));
        assert_eq!(unknown(&of(4)), None, "nothing is compared");
    }

    #[test]
    fn numbers_say_what_they_are_of() {
        let told: Vec<String> = [0.002, 0.012, 0.1, 0.996].into_iter().map(points).collect();
        assert_eq!(told, ["under 1 point", "1 point", "10 points", "100 points"]);
        assert_eq!(of_whom(Share::new(20, 20), 60, "failures"), "failures that have one");
        assert_eq!(of_whom(Share::new(20, 60), 60, "failures"), "failures");
        assert!(rule().contains("from 5 failures on") && rule().contains("10 points or more above"), "{}", rule());
    }
}
