//! The end of a run in words: counts, causes with an example each, and the next command.

use anyhow::Result;
use redrive::dead::CauseDied;
use redrive_client::Desk;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::PipelineName;
use redrive_core::tasks::is_made_up;

use super::super::{feed, waiting};
use super::end::{ByOthers, RunEnd};
use super::retry_dead::Retried;
use super::told::{Told, told};
use crate::output::foreign::{cut, width_of};
use crate::output::paint::{BAD, DIM, GOOD, WAITING, paint};
use crate::output::print::say;
use crate::output::report::figures;
use crate::output::retrying;
use crate::output::table;
use crate::output::typed::{REDRIVE, in_text};

/// Lines of causes that are told.
const CAUSES_MAX: usize = 5;

impl RunEnd {
    /// Says how it went.
    pub async fn summarise(&self, redrive: &Desk, fail_over: Option<f64>) -> Result<()> {
        let without = match self.without_result {
            0 => String::new(),
            without => format!(" ({without} without a result)"),
        };
        say!("{} {}{without}  in {:.1} s", paint(GOOD, "done:"), self.done, self.took.as_secs_f64());
        self.say_dead(fail_over);
        if self.discarded > 0 {
            say!("{} {} by a rule", paint(DIM, "discarded:"), self.discarded);
        }
        if self.gave_up > 0 {
            waiting::show_given_up(self.gave_up);
        }
        self.say_others();
        self.say_known();
        self.say_retried();
        if self.replaying > 0 {
            let see = in_text("see `redrive replay list`, `redrive replay resume`");
            say!("{} {} wait in a replay: {see}", paint(WAITING, "replaying:"), self.replaying);
        }
        waiting::show_handed_on(redrive, self.handed_on.clone()).await?;
        if self.fed.broken > 0 {
            say!("{} {}, not enqueued", paint(BAD, "broken lines:"), self.fed.broken);
        }
        if let Some(unfinished) = feed::unfinished(&self.fed) {
            say!("{} {unfinished}", paint(WAITING, "left out:"));
        }
        if let Some(limit) = feed::limit(&self.fed) {
            say!("{} {limit}", paint(WAITING, "limit reached:"));
        }
        if let Some(waited) = &self.waited {
            waiting::show(waited, redrive.now());
        }
        self.retrying.iter().for_each(retrying::tell);
        if self.interrupted || self.waited.is_some() {
            let longer = if self.waited.is_some() { "; --max-wait has it wait longer" } else { "" };
            say!("{} {}; the same command goes on{longer}", paint(WAITING, "left:"), self.left);
        }
        Ok(())
    }

    /// What became of letters of earlier runs.
    fn say_retried(&self) {
        let Some(Retried { letters, tried, recovered, left_out, is_open, .. }) = self.retried else { return };
        let style = if is_open { WAITING } else { GOOD };
        say!("{} {tried} of {letters} that died before, {recovered} recovered", paint(style, "retried:"));
        if left_out > 0 {
            say!("  {left_out} left out: permanently failed, or in another replay");
        }
        if let Some(untaken) = feed::untaken(&self.fed, &self.name) {
            say!("  {untaken}");
        }
        if is_open {
            say!("  the rest waits: {REDRIVE} replay show last, {REDRIVE} replay resume last");
        }
    }

    /// What is not in the figures of this run.
    fn say_others(&self) {
        let ByOthers { done, died } = self.by_others;
        if done + died > 0 {
            say!("besides, other processes that work on {}: {done} done, {died} dead", self.name);
        }
    }

    fn say_dead(&self, fail_over: Option<f64>) {
        let before = self.dead_before();
        let dead = self.died + i64::try_from(before).unwrap_or(0);
        let style = if dead > 0 { BAD } else { GOOD };
        let of_before = match before {
            0 => String::new(),
            before => format!("  ({before} of them before)"),
        };
        let share = match fail_over {
            Some(most) => format!(
                "  ({} of what ended; up to {} may)",
                figures::percent(self.died_share()),
                figures::percent(most)
            ),
            None => String::new(),
        };
        say!("{} {dead}{of_before}{share}", paint(style, "dead:"));
        let mut told = told(&self.of.causes);
        told.truncate(CAUSES_MAX);
        told.iter().for_each(|told| say_cause(told, &self.name));
        let more = self.of.causes.len() - told.iter().map(|told| told.causes).sum::<usize>();
        if more > 0 {
            let causes = if more == 1 { "cause" } else { "causes" };
            say!("  and {more} more {causes}: {REDRIVE} cause list --pipeline {}", self.name);
        }
        if self.of.is_cut {
            say!(
                "  more than 100,000 died, and not all are counted here: {REDRIVE} cause list --pipeline {}",
                self.name
            );
        }
        if dead > 0 {
            let round = self.round.as_ref().map(|round| format!(" --round {round}")).unwrap_or_default();
            say!("see them: {REDRIVE} dead list --pipeline {}{round}", self.name);
        }
    }

    /// What was known, and how to run it again.
    fn say_known(&self) {
        let known = feed::known(&self.fed);
        if known.is_empty() {
            return;
        }
        let said = format!("known: {}; {} new", known.join(", "), self.fed.accepted);
        say!("{}", table::folded(&said, "  ", table::line_width_of_stderr()).join("\n"));
        let again = match (self.fed.known_done > 0, self.fed.known_dead > 0 && self.retried.is_none()) {
            (true, true) => "to run what died before: --retry-dead; all of them: --again, or --round NAME",
            (true, false) => "to run all of them once more: --again, or --round NAME",
            (false, true) => "to run what died before: --retry-dead",
            (false, false) => return,
        };
        say!("{again}");
    }
}

/// The least room for what a letter is about.
const SUBJECT_WIDTH_MIN: usize = 12;

/// A cause, or several that say the same: how many died of it, an example, and where to look.
fn say_cause(told: &Told<'_>, pipeline: &PipelineName) {
    let width = table::line_width_of_stderr();
    let CauseDied { cause, reason, example, .. } = told.first;
    let of_all = match (told.causes, told.targets.len()) {
        (1, _) => String::new(),
        (causes, 0 | 1) => format!(", {causes} causes"),
        (_, targets) => format!(", on {targets} targets"),
    };
    let head = format!("  {} × {reason}: ", told.count);
    let taken = width_of(&head) + width_of(&of_all);
    say!("{head}{}{of_all}", cut(&told.title, width.saturating_sub(taken).max(20)));
    let crashes = if example.crashes > 0 { format!(", crashes {}", example.crashes) } else { String::new() };
    let tried = format!("(attempts {}{crashes})", example.attempts);
    let next = match cause {
        _ if told.causes > 1 => format!("{REDRIVE} cause list --pipeline {pipeline}"),
        Some(cause) => format!("{REDRIVE} cause show {cause}"),
        None => {
            format!("{REDRIVE} dead show {}", example.number.map_or_else(|| example.id.to_string(), |n| n.to_string()))
        }
    };
    let number = example.number.map(|number| format!("{number} ")).unwrap_or_default();
    let (before, after) = (format!("      e.g. {number}"), format!(" {tried}"));
    let room = width.saturating_sub(width_of(&before) + width_of(&after));
    let what = |room: usize| cut(&subject(example), room.max(SUBJECT_WIDTH_MIN));
    match room.checked_sub(2 + width_of(&next)).filter(|room| *room >= SUBJECT_WIDTH_MIN) {
        Some(beside) => say!("{before}{}{after}  {}", what(beside), paint(DIM, next)),
        // The command has a line of its own, so that it can be copied.
        None => say!("{before}{}{after}\n      {}", what(room), paint(DIM, next)),
    }
}

/// What a letter is about, as short as it can be told: the key that somebody gave it, its address, or its input.
fn subject(letter: &DeadLetter) -> String {
    let given = letter.key.as_deref().filter(|key| !is_made_up(key));
    let url = letter.input.get("url").and_then(|value| value.as_str());
    match given.or(url) {
        Some(text) => text.to_owned(),
        None => serde_json::to_string(&letter.input).unwrap_or_default(),
    }
}
