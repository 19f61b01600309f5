//! What is different about those who died, in words that pages and the command share.

use redrive::compare::{Differences, Uncompared};
use redrive_core::facets::{Baseline, FAILURES_MIN};

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

/// What a kind is called.
pub fn label(kind: &str) -> String {
    kind.strip_prefix("input.").map_or_else(|| kind.to_owned(), |field| format!("input {field}"))
}
