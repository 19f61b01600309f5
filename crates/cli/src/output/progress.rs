//! Progress of a run: a bar on a terminal, a plain line now and then otherwise. Both on standard error.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use redrive::reach::Away;
use redrive::sink::{JobResult, JsonLines, ResultForm, Sink};
use redrive::worker::Running;
use redrive_core::breakers::BreakerView;
use redrive_core::ledger::Ledger;
use redrive_core::retrying::RetryingView;
use redrive_core::time::Timestamp;

use super::bar;
use super::foreign::{COLUMNS_MAX, cut};
use super::print::{out, say};
use super::retrying;
use super::shown::{Held, Shown};
use super::table::line_width_of_stderr;

/// How often the bar is drawn anew, and how often a plain line is printed.
const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How wide the bar itself is.
const BAR_COLUMNS: usize = 12;

/// The progress of a run.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    base: Ledger,
    without_result: Arc<AtomicU64>,
}

impl Progress {
    /// Begins; `base` is the ledger before the first job.
    pub fn start(base: Ledger) -> Self {
        // What is said beside the bar is cut to fit, and may have more lines below.
        let bar = new_bar("{bar:12.cyan/dim} {pos}/{len} {msg}");
        Self { bar, begun: Instant::now(), base, without_result: Arc::default() }
    }

    /// How often to show.
    pub fn every(&self) -> Duration {
        if is_bar() { BAR_EVERY } else { LINE_EVERY }
    }

    /// Shows where the ledger is, which targets are waited for, what waits for another attempt meanwhile, and what runs.
    pub fn show(
        &self,
        now: Ledger,
        (breakers, waits): (&[BreakerView], Option<&RetryingView>),
        running: &Running,
        time: Timestamp,
    ) {
        let change = |now: i64, base: i64| u64::try_from(now - base).unwrap_or(0);
        let (done, dead) = (change(now.done, self.base.done), change(now.dead, self.base.dead));
        let ended = done + dead + change(now.discarded, self.base.discarded);
        let rate = ended as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let total = ended + u64::try_from(now.open()).unwrap_or(0);
        let retrying = u64::try_from(now.retrying).unwrap_or(0);
        let (held, runs) = (Held::of(breakers, time), running.longest().map(|longest| (running.count(), longest)));
        let shown = Shown { done, dead, retrying, rate, held, runs, silent: running.silent() };
        if is_bar() {
            self.bar.set_length(total);
            self.bar.set_position(ended);
            let taken = BAR_COLUMNS + 2 + format!("{ended}/{total}").len();
            let width = line_width_of_stderr();
            let mut lines = vec![shown.within(width.saturating_sub(taken + 1))];
            lines.extend(waits.map(|view| retrying::short(view, width.saturating_sub(1))).unwrap_or_default());
            self.bar.set_message(lines.join("\n"));
        } else {
            say!("{}", plain((ended, total), &shown, waits));
        }
    }

    /// Shows that the store is waited for. Without a bar that was said already, once.
    pub fn show_waiting(&self, away: &Away) {
        let text = format!("waiting for the store for {} s: {}: {}", away.lasts.as_secs(), away.place, away.why);
        self.bar.set_message(cut(&text, line_width_of_stderr().saturating_sub(BAR_COLUMNS + 20)));
    }

    /// Where results go, and what is written of them: to a file, or to standard output beside the bar.
    pub fn sink(&self, file: Option<JsonLines>, form: ResultForm) -> Box<dyn Sink> {
        Box::new(CountedResults { sink: sink(file, form), without_result: Arc::clone(&self.without_result) })
    }

    /// How many results had nothing in them so far.
    pub fn without_result(&self) -> u64 {
        self.without_result.load(Ordering::Relaxed)
    }

    /// Prints a line above the bar.
    pub fn say(&self, line: &str) {
        say!("{line}");
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        bar::gone();
    }

    /// How long it has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// What is printed of a run now and then where there is no bar.
fn plain((ended, total): (u64, u64), shown: &Shown, waits: Option<&RetryingView>) -> String {
    let mut lines = vec![format!("progress: {ended}/{total}  {}", shown.within(COLUMNS_MAX))];
    lines.extend(waits.map(|view| retrying::short(view, COLUMNS_MAX)).unwrap_or_default());
    lines.join("\n")
}

/// Counts results that have nothing in them, once they are written.
struct CountedResults {
    sink: Box<dyn Sink>,
    without_result: Arc<AtomicU64>,
}

#[async_trait]
impl Sink for CountedResults {
    async fn write(&self, results: &[JobResult]) -> Result<(), redrive::Error> {
        self.sink.write(results).await?;
        let empty = results.iter().filter(|result| result.is_empty()).count() as u64;
        self.without_result.fetch_add(empty, Ordering::Relaxed);
        Ok(())
    }
}

/// Counts towards a known end: a bar on a terminal, a plain line now and then otherwise.
#[derive(Clone)]
pub struct Counter {
    bar: ProgressBar,
    what: &'static str,
    said_at: Arc<Mutex<Instant>>,
}

impl Counter {
    /// Begins; `what` is what happens to the things that are counted.
    pub fn start(what: &'static str) -> Self {
        Self {
            bar: new_bar("{bar:12.cyan/dim} {pos}/{len} {wide_msg}"),
            what,
            said_at: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Shows how far it is.
    pub fn show(&self, done: u64, of: u64) {
        self.bar.set_length(of);
        self.bar.set_position(done);
        let Ok(mut said_at) = self.said_at.lock() else { return };
        if !is_bar() && said_at.elapsed() >= LINE_EVERY {
            *said_at = Instant::now();
            say!("{}: {done}/{of}", self.what);
        }
    }

    /// Where results go: to a file, or to standard output beside the bar.
    pub fn sink(&self, file: Option<JsonLines>) -> Box<dyn Sink> {
        sink(file, ResultForm::Whole)
    }

    /// Shows something beside the bar.
    pub fn note(&self, text: String) {
        self.bar.set_message(cut(&text, COLUMNS_MAX));
    }

    /// Prints a line above the bar.
    pub fn say(&self, line: &str) {
        say!("{line}");
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        bar::gone();
    }
}

/// A bar, seen only on a terminal.
fn new_bar(template: &str) -> ProgressBar {
    let target = if is_bar() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::with_draw_target(Some(0), target);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─"));
    bar::shown(&bar);
    bar
}

fn is_bar() -> bool {
    std::io::stderr().is_terminal()
}

/// Results on the same terminal as a bar: the bar steps aside for each batch.
pub struct BesideBar {
    sink: JsonLines,
    form: ResultForm,
}

#[async_trait]
impl Sink for BesideBar {
    async fn write(&self, results: &[JobResult]) -> Result<(), redrive::Error> {
        if is_bar() && std::io::stdout().is_terminal() {
            let print = |result: &JobResult| match result.line(self.form)? {
                Some(line) => out!("{line}"),
                None => Ok(()),
            };
            let printed = bar::beside(|| results.iter().try_for_each(print));
            return printed.map_err(|source| redrive::Error::Sink { place: "standard output".into(), source });
        }
        self.sink.write(results).await
    }
}

/// Where results go: to a file, or to standard output beside the bar.
fn sink(file: Option<JsonLines>, form: ResultForm) -> Box<dyn Sink> {
    match file {
        Some(file) => Box::new(file),
        None => Box::new(BesideBar { sink: JsonLines::stdout().form(form), form }),
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::failures::{Failure, FailureReport, Reason};
    use redrive_core::ids::JobId;
    use redrive_core::retrying::RetryingJob;
    use redrive_core::time::Timestamp;

    use super::*;

    #[test]
    fn a_plain_line_is_followed_by_what_is_retried_and_the_command_only_while_a_target_is_on_hold() {
        let shown = Shown { done: 2, dead: 0, retrying: 4, rate: 1.0, held: None, runs: None, silent: None };
        let name = "shop".parse().expect("a name");
        let failure =
            Failure::told(&FailureReport::message("no price"), Reason::HandlerError, Timestamp::from_millis(0));
        let target = "shop.example".to_owned();
        let job = RetryingJob { id: JobId::from_bytes([0; 16]), target: Some(target.clone()), failure };
        let view = RetryingView::new(name, vec![(target, 9)], vec![job], 1);
        let told = "progress: 2/9  4 retrying  1.0/s  2 done\nretrying: 1 × handler_error: no price\n    redrive breaker close shop.example --pipeline shop";
        assert_eq!(plain((2, 9), &shown, Some(&view)), told);
        assert_eq!(plain((2, 9), &shown, None), told.lines().next().expect("a line"));
    }
}
