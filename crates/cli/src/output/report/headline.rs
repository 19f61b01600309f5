//! The most important thing of a report, in one sentence: the pipeline that buries most, how much of its work that is,
//! what for, and since when.

use redrive_core::failures::Reason;
use redrive_core::time::Timestamp;

use crate::output::report::figures::{count, counted, moment, moment_near, part_of, percent, share};
use crate::output::report::tone::Tone;
use redrive::report::{CauseLine, PipelineReport, Report};

/// A sentence, and how good or bad its news is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    /// How good or bad.
    pub tone: Tone,
    /// The sentence.
    pub text: String,
}

/// What to say first about a report.
pub fn headline(report: &Report) -> Headline {
    match report.pipelines.iter().max_by_key(|pipeline| pipeline.buried) {
        Some(worst) if worst.buried > 0 => failing(report, worst),
        _ if report.settled() > 0 => Headline { tone: Tone::Good, text: nobody_died(report) },
        _ => Headline { tone: Tone::Plain, text: nobody_died(report) },
    }
}

fn failing(report: &Report, worst: &PipelineReport) -> Headline {
    let mut text = format!(
        "{}: {} tasks died ({})",
        worst.pipeline,
        part_of(worst.buried, worst.settled()),
        percent(worst.dlq_rate())
    );
    if let Some(main) = &worst.main_reason {
        text += &format!("; {} for {}", roughly(main.count, worst.buried), main.reason);
        if let Some(since) = since(report, worst, main.reason) {
            text += &format!(", since {}", moment_near(since, report.until));
        }
    }
    text.push('.');
    Headline { tone: Tone::of_dlq_rate(worst.dlq_rate()), text }
}

fn nobody_died(report: &Report) -> String {
    let mut text = match report.settled() {
        0 => format!("No task came to its end from {} to {}.", moment(report.since), moment(report.until)),
        1 => "No task died: the one that came to its end is done.".to_owned(),
        settled => format!("No task died: all {} that came to their end are done.", count(settled)),
    };
    if report.recovered() > 0 {
        text += &format!(" {} recovered.", counted(report.recovered(), "dead letter was", "dead letters were"));
    }
    if report.dead() > 0 {
        text += &format!(" {} from before.", counted(report.dead(), "dead letter is left", "dead letters are left"));
    }
    text
}

/// Since when jobs of a pipeline die for a reason, as far as its causes tell.
fn since(report: &Report, pipeline: &PipelineReport, reason: Reason) -> Option<Timestamp> {
    let mine = |cause: &&CauseLine| cause.pipeline == pipeline.pipeline && cause.reason == reason && cause.buried > 0;
    Some(report.causes.iter().filter(mine).max_by_key(|cause| cause.buried)?.first_seen)
}

/// A part of a whole as people say it.
fn roughly(part: i64, whole: i64) -> String {
    match share(part, whole) {
        share if share >= 1.0 => "all".to_owned(),
        _ if whole < 20 => part_of(part, whole),
        share if share >= 0.95 => "nearly all".to_owned(),
        share => format!("{:.0} of 10", (share * 10.0).clamp(1.0, 9.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report::sample;

    #[test]
    fn it_names_the_pipeline_the_share_the_reason_and_the_time() {
        let headline = headline(&sample::busy());
        let wanted = "catalog: 1,204 of 8,426 tasks died (14.3 %); 9 of 10 for schema_validation, since 14:02.";
        assert_eq!(headline, Headline { tone: Tone::Bad, text: wanted.to_owned() });
    }

    #[test]
    fn without_failures_it_says_so() {
        let mut report = sample::empty();
        assert_eq!(headline(&report).text, "No task came to its end from 2026-11-14 18:00 to 2026-11-15 18:00.");
        report.pipelines = sample::busy().pipelines;
        for pipeline in &mut report.pipelines {
            (pipeline.buried, pipeline.ledger.dead) = (0, 1);
        }
        let text = headline(&report).text;
        assert!(text.starts_with("No task died: all "), "{text}");
        assert!(text.ends_with(" 4 dead letters are left from before."), "{text}");
    }

    #[test]
    fn shares_as_people_say_them() {
        let said = [(4, 4), (3, 4), (90, 100), (97, 100), (1, 1_000)].map(|(part, whole)| roughly(part, whole));
        assert_eq!(said, ["all", "3 of 4", "9 of 10", "nearly all", "1 of 10"]);
    }
}
