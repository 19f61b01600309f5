//! The steps of a replay, and what became of its letters.

use maud::{Markup, html};
use redrive::contract::{CauseView, ReplayView};
use redrive::replays::StepLine;
use redrive_core::replays::ReplayState;

use super::super::parts::{Glyph, column, column_num, columns, number, section_head, state, text, with_query};
use super::super::shell::number_of;
use crate::look::figures::{count, part_of, percent};
use crate::look::tone::Tone;

/// What became of letters, as parts of a bar: recovered, failed, under way.
struct Parts {
    whole: u64,
    recovered: u64,
    failed: u64,
    running: u64,
}

/// The steps, each with a bar.
pub fn ramp(replay: &ReplayView, steps: &[StepLine]) -> Markup {
    let limit = percent(replay.pacing.refail_max);
    let fact =
        format!("each waits for the one before; it pauses when more than {limit} of a step, and two, fail again");
    let current = steps.iter().position(|step| step.running + step.pending > 0).filter(|_| !replay.state.is_over());
    html! {
        section aria-labelledby="ramp" {
            (section_head("ramp", "Steps", &fact))
            @if steps.is_empty() { p.empty { "Its letters are being chosen." } }
            @else {
                table.ramp role="table" {
                    (columns(&[
                        column("Step"), column("State"), column("Of its letters"), column_num("Sent"),
                        column_num("Recovered"), column_num("Failed again"), column_num("Under way"),
                    ]))
                    tbody role="rowgroup" #steps {
                        @for (at, step) in steps.iter().enumerate() {
                            (row(at, step, current == Some(at), replay.state))
                        }
                    }
                }
                @if replay.progress.forgiven > 0 {
                    p.fact { "It was resumed after failures: a step began again then, so that borders between steps are rough." }
                }
            }
        }
    }
}

fn row(at: usize, step: &StepLine, is_current: bool, standing: ReplayState) -> Markup {
    let parts = Parts { whole: step.letters, recovered: step.recovered, failed: step.failed, running: step.running };
    html! {
        tr role="row" id={ "step-" (at) } aria-current=[is_current.then_some("step")] {
            th.r-step role="rowheader" scope="row" { (at + 1) }
            td.r-state role="cell" { (standing_of(step, is_current, standing)) }
            td.r-bar role="cell" { (bar(&parts)) }
            td.num role="cell" data-l="sent" { (part_of(step.sent() as i64, step.letters as i64)) }
            td.num role="cell" data-l="recovered" { (number(step.recovered as i64)) }
            td.num role="cell" data-l="failed" { (number(step.failed as i64)) }
            td.num role="cell" data-l="under way" { (number(step.running as i64)) }
        }
    }
}

fn standing_of(step: &StepLine, is_current: bool, standing: ReplayState) -> Markup {
    if step.pending + step.running == 0 {
        return match (step.recovered, step.failed) {
            (0, 0) => state("not sent", Glyph::Muted, Tone::Quiet),
            (0, _) => state("failed", Glyph::Cross, Tone::Bad),
            (_, 0) => state("done", Glyph::Check, Tone::Good),
            _ => state("done, some failed", Glyph::Triangle, Tone::Warn),
        };
    }
    match standing {
        ReplayState::Paused if is_current => state("paused", Glyph::Bars, Tone::Warn),
        _ if is_current => state("now", Glyph::Half, Tone::Plain),
        _ => state("waits", Glyph::Muted, Tone::Quiet),
    }
}

/// How far a replay is, as a bar with its legend.
pub fn overall(replay: &ReplayView) -> Markup {
    let p = &replay.progress;
    let parts = Parts { whole: p.total, recovered: p.recovered, failed: p.failed, running: p.running };
    let legend = [
        ("good", "recovered", p.recovered),
        ("bad", "failed", p.failed),
        ("plain", "under way", p.running),
        ("track", "not sent yet", p.pending),
    ];
    html! {
        div.overall #bar { (bar(&parts)) }
        ul.legend #bar-legend {
            @for (class, name, letters) in legend {
                li { svg width="10" height="10" aria-hidden="true" { rect class=(class) width="10" height="10" {} } (name) " " (count(letters as i64)) }
            }
            @for (name, letters) in [("gone meanwhile", p.gone), ("left dead", p.cancelled())] {
                @if letters > 0 { li { (name) " " (count(letters as i64)) } }
            }
            li { "of " (number_of(usize::try_from(p.total).unwrap_or(usize::MAX), "letter", "letters")) }
        }
    }
}

fn bar(parts: &Parts) -> Markup {
    let share = |part: u64| if parts.whole == 0 { 0.0 } else { part as f64 / parts.whole as f64 * 100.0 };
    let pieces = [("good", parts.recovered), ("bad", parts.failed), ("plain", parts.running)];
    let title = format!(
        "{} recovered, {} failed, {} under way of {}",
        parts.recovered, parts.failed, parts.running, parts.whole
    );
    let placed = pieces.into_iter().scan(0.0, |from, (class, part)| {
        let at = *from;
        *from += share(part);
        Some((class, at, share(part)))
    });
    html! {
        svg.parts height="8" role="img" aria-label=(title) {
            title { (title) }
            rect.track width="100%" height="8" {}
            @for (class, at, width) in placed.filter(|(_, _, width)| *width > 0.0) {
                rect class=(class) x=(format!("{at:.2}%")) width=(format!("{width:.2}%")) height="8" {}
            }
        }
    }
}

/// How far a replay is, for a row of a list.
pub fn small_bar(replay: &ReplayView) -> Markup {
    let p = &replay.progress;
    bar(&Parts { whole: p.total, recovered: p.recovered, failed: p.failed, running: p.running })
}

/// What became of the letters; `others` are causes that letters failed for which they had not died of.
pub fn outcomes(here: &str, replay: &ReplayView, joined: u64, others: &[(CauseView, u64)]) -> Markup {
    let p = &replay.progress;
    let settled = p.recovered + p.failed + p.gone;
    let rows = [
        ("Recovered", p.recovered, "recovered", "good"),
        ("Same cause", p.same_cause, "same_cause", "bad"),
        ("Other cause", p.failed.saturating_sub(p.same_cause), "other_cause", "bad"),
        ("Gone meanwhile", p.gone, "gone", "quiet"),
    ];
    let place = |outcome: &str| format!("{}#letters", with_query(here, "outcome", Some(outcome)));
    html! {
        section aria-labelledby="verdicts" {
            div.section-head {
                h2 id="verdicts" { "Verdicts" }
                // It changes with what is beneath it.
                span.fact #verdicts-fact { (part_of(settled as i64, p.total as i64)) " settled" }
            }
            table.verdicts role="table" { tbody role="rowgroup" #outcomes {
                @for (label, letters, outcome, class) in rows {
                    tr role="row" {
                        th role="rowheader" scope="row" {
                            @if letters > 0 { a href=(place(outcome)) { (label) } } @else { span.muted { (label) } }
                        }
                        td role="cell" { (share_bar(letters, settled, class)) }
                        td.num role="cell" { (part_of(letters as i64, settled as i64)) }
                    }
                }
            } }
            @for (cause, letters) in others {
                p.fact { "Other cause: " a href={ "/causes/" (cause.id) } { code { (cause.id) } } " " (text(&cause.title)) ", " (number_of(usize::try_from(*letters).unwrap_or(usize::MAX), "letter", "letters")) }
            }
            @if joined > 0 {
                p.fact #joined { (number_of(usize::try_from(joined).unwrap_or(usize::MAX), "letter", "letters")) " died like that since, and are no part of it." }
            }
        }
    }
}

fn share_bar(part: u64, whole: u64, class: &str) -> Markup {
    let width = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    html! {
        svg.parts height="8" aria-hidden="true" {
            rect.track width="100%" height="8" {}
            @if width > 0.0 { rect class=(class) width=(format!("{width:.2}%")) height="8" {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_good_only_if_nothing_of_it_failed() {
        let step = |recovered, failed, gone| StepLine { letters: 5, recovered, failed, gone, ..StepLine::default() };
        for (step, word, class) in [
            (step(5, 0, 0), "done", "good-text"),
            (step(3, 2, 0), "done, some failed", "warn-text"),
            (step(0, 5, 0), "failed", "bad-text"),
            (step(0, 1, 4), "failed", "bad-text"),
            (step(0, 0, 5), "not sent", "muted"),
        ] {
            let shown = standing_of(&step, false, ReplayState::Done).into_string();
            assert!(shown.contains(&format!("{word}</span>")) && shown.contains(class), "{shown}");
        }
    }
}
