//! What happened in a window of time: the numbers behind the HTML page, the terminal version and the JSON.
//!
//! - `gather`: filling it in from a store

mod gather;

use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A part of a whole, from 0 to 1; 0 of nothing is 0.
fn share(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

/// All there is to say about a window of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// When it was made.
    pub made_at: Timestamp,
    /// Where the window begins.
    pub since: Timestamp,
    /// Where the window ends.
    pub until: Timestamp,
    /// By jobs buried, most first.
    pub pipelines: Vec<PipelineReport>,
    /// Every hour of the window, also the empty ones, oldest first.
    pub hours: Vec<HourReport>,
    /// Jobs buried in the window by reason, most first.
    pub reasons: Vec<ReasonCount>,
    /// Dead letters by code, most first.
    pub codes: Vec<CodeCount>,
    /// Jobs buried by hour of day (UTC) and reason.
    pub clock: Vec<ClockCell>,
    /// Attempts by target, worst first.
    pub targets: Vec<Rate>,
    /// Attempts by label of the proxy.
    pub proxies: Vec<Rate>,
    /// Causes by impact.
    pub causes: Vec<CauseLine>,
    /// How often each field was found, by pipeline and version of its extraction rules.
    pub fields: Vec<FieldCoverage>,
}

/// A pipeline: where its jobs are now, and what became of them in the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PipelineReport {
    /// Its name.
    pub pipeline: PipelineName,
    /// Where its jobs are now.
    pub ledger: Ledger,
    /// Jobs done in the window, the recovered ones among them.
    pub done: i64,
    /// Jobs that died in the window for the first time.
    pub buried: i64,
    /// Attempts in the window that failed and were put back for a retry.
    pub retried: i64,
    /// Dead letters that became done in the window.
    pub recovered: i64,
    /// Dead letters that failed again in the window, in a replay or elsewhere.
    pub refailed: i64,
    /// Dead letters that were brought from another store in the window.
    pub imported: i64,
    /// Why most of those that died did.
    pub main_reason: Option<ReasonCount>,
    /// When the oldest of its dead letters died.
    pub oldest_dead: Option<Timestamp>,
}

/// An hour, over all pipelines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HourReport {
    /// When it began.
    pub hour: Timestamp,
    /// Jobs done, the recovered ones among them.
    pub done: i64,
    /// Jobs buried.
    pub buried: i64,
    /// Dead letters that became done.
    pub recovered: i64,
}

/// Jobs buried for a reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The reason.
    pub reason: Reason,
    /// How many.
    pub count: i64,
}

/// Dead letters with a code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CodeCount {
    /// The code, as the handler gave it.
    pub code: String,
    /// How many.
    pub count: i64,
}

/// Jobs buried in one hour of the day for one reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClockCell {
    /// Hour of day in UTC, 0 to 23.
    pub hour: u8,
    /// The reason.
    pub reason: Reason,
    /// How many.
    pub count: i64,
}

/// Attempts by something they have in common: a target, a proxy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// What they have in common.
    pub name: String,
    /// Attempts that went well.
    pub ok: i64,
    /// Attempts that failed.
    pub failed: i64,
    /// Why most of them failed.
    pub top_reason: Option<Reason>,
}

/// A cause, in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CauseLine {
    /// Its id.
    pub id: String,
    /// `new`, `ongoing`, `escalating`, `regressed`, `muted` or `resolved`.
    pub state: String,
    /// Whose jobs die of it.
    pub pipeline: PipelineName,
    /// The reason they share.
    pub reason: Reason,
    /// What it is, in words.
    pub title: String,
    /// Its dead letters now.
    pub dead: i64,
    /// How often a job died of it in the window, replays among them.
    pub buried: i64,
    /// The same in equal parts of the window, oldest first.
    pub trend: Vec<i64>,
    /// When its first job died.
    pub first_seen: Timestamp,
    /// When its latest job died.
    pub last_seen: Timestamp,
    /// Who looks after it.
    pub owner: Option<String>,
    /// The targets it was seen at.
    pub targets: Vec<String>,
}

/// How often a field of a record was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FieldCoverage {
    /// The pipeline.
    pub pipeline: PipelineName,
    /// The version of its extraction rules, a short hash.
    pub version: String,
    /// The name of the field.
    pub field: String,
    /// Records in the window.
    pub records: i64,
    /// Those with the field.
    pub filled: i64,
    /// Records in the last hours of the window.
    pub recent_records: i64,
    /// Those with the field.
    pub recent_filled: i64,
}

impl Report {
    /// Jobs that became done in the window.
    pub fn done(&self) -> i64 {
        self.pipelines.iter().map(|pipeline| pipeline.done).sum()
    }

    /// Jobs that died in the window for the first time.
    pub fn buried(&self) -> i64 {
        self.pipelines.iter().map(|pipeline| pipeline.buried).sum()
    }

    /// Jobs that came to their end in the window, each once: one that recovers has come to it when it died.
    pub fn settled(&self) -> i64 {
        self.pipelines.iter().map(PipelineReport::settled).sum()
    }

    /// Dead letters that became done in the window.
    pub fn recovered(&self) -> i64 {
        self.pipelines.iter().map(|pipeline| pipeline.recovered).sum()
    }

    /// Dead letters now.
    pub fn dead(&self) -> i64 {
        self.pipelines.iter().map(|pipeline| pipeline.ledger.dead).sum()
    }

    /// When the oldest dead letter died.
    pub fn oldest_dead(&self) -> Option<Timestamp> {
        self.pipelines.iter().filter_map(|pipeline| pipeline.oldest_dead).min()
    }

    /// The share of settled jobs that were buried; 0 if none were settled.
    pub fn dlq_rate(&self) -> f64 {
        share(self.buried(), self.settled())
    }

    /// Jobs buried per hour of day, one row per reason, most first.
    pub fn clock_rows(&self) -> Vec<(Reason, [i64; 24])> {
        let mut rows: Vec<(Reason, [i64; 24])> = Vec::new();
        for cell in &self.clock {
            let at = rows.iter().position(|(reason, _)| *reason == cell.reason).unwrap_or_else(|| {
                rows.push((cell.reason, [0; 24]));
                rows.len() - 1
            });
            if let Some(count) = rows[at].1.get_mut(usize::from(cell.hour)) {
                *count += cell.count;
            }
        }
        rows.retain(|(_, counts)| counts.iter().any(|count| *count > 0));
        rows.sort_by_key(|(_, counts)| -counts.iter().sum::<i64>());
        rows
    }
}

impl PipelineReport {
    /// Jobs that came to their end in the window, each once: one that recovers has come to it when it died.
    pub fn settled(&self) -> i64 {
        self.done - self.recovered + self.buried
    }

    /// The share of settled jobs that were buried; 0 if none were settled.
    pub fn dlq_rate(&self) -> f64 {
        share(self.buried, self.settled())
    }
}

impl Rate {
    /// All attempts.
    pub fn attempts(&self) -> i64 {
        self.ok + self.failed
    }

    /// The share of attempts that failed; 0 if there were none.
    pub fn failed_share(&self) -> f64 {
        share(self.failed, self.attempts())
    }
}

/// Fewer records than this say nothing about a change.
const DRIFT_RECORDS_MIN: i64 = 20;
/// A smaller fall than this is noise.
const DRIFT_SHARE_MIN: f64 = 0.05;

impl FieldCoverage {
    /// The share of records with the field, over the whole window.
    pub fn filled_share(&self) -> f64 {
        share(self.filled, self.records)
    }

    /// The share of records with the field, in the last hours.
    pub fn recent_share(&self) -> f64 {
        share(self.recent_filled, self.recent_records)
    }

    /// The share of records with the field, before the last hours; none if there are too few to compare.
    pub fn earlier_share(&self) -> Option<f64> {
        let earlier = self.records - self.recent_records;
        let enough = earlier >= DRIFT_RECORDS_MIN && self.recent_records >= DRIFT_RECORDS_MIN;
        enough.then(|| share(self.filled - self.recent_filled, earlier))
    }

    /// Whether the field is found clearly less often than before.
    pub fn has_drifted(&self) -> bool {
        self.earlier_share().is_some_and(|earlier| earlier - self.recent_share() >= DRIFT_SHARE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_report_has_no_strange_numbers() {
        let report = Report::default();
        assert_eq!((report.settled(), report.dlq_rate(), report.oldest_dead()), (0, 0.0, None));
        assert!(report.clock_rows().is_empty());
    }

    #[test]
    fn the_clock_adds_up_and_survives_wrong_hours() {
        let mut report = Report::default();
        let cell = |hour, reason, count| ClockCell { hour, reason, count };
        report.clock = vec![
            cell(3, Reason::Dns, 1),
            cell(4, Reason::Tls, 5),
            cell(3, Reason::Dns, 2),
            cell(99, Reason::Network, 7),
        ];
        let rows: Vec<_> = report.clock_rows().iter().map(|(reason, counts)| (*reason, counts[3], counts[4])).collect();
        assert_eq!(rows, [(Reason::Tls, 0, 5), (Reason::Dns, 3, 0)]);
    }

    #[test]
    fn drift_needs_enough_records_and_a_clear_fall() {
        let mut field = FieldCoverage {
            pipeline: "catalog".parse().expect("a name"),
            version: "v1".into(),
            field: "price".into(),
            records: 1_000,
            filled: 900,
            recent_records: 100,
            recent_filled: 0,
        };
        assert!(field.has_drifted());
        field.recent_filled = 98;
        assert!(!field.has_drifted());
        (field.recent_records, field.recent_filled) = (19, 0);
        assert!(!field.has_drifted());
    }
}
