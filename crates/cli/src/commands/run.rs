//! `redrive run`: enqueues a file, works until the pipeline is drained, and says how it went.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use redrive::config::units::Wait;
use redrive::contract::{CountEvents, DeadFilter, ListDead, Span};
use redrive::tasks::{Fed, Feed, Tasks, WhenFull};
use redrive::worker::Until;
use redrive::{CancellationToken, Pipeline, Redrive, Waited};
use redrive_core::counts::Event;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::{feed, signals, waiting};
use crate::args::RunArgs;
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::paint::{BAD, GOOD, WAITING, paint};
use crate::output::print::say;
use crate::output::progress::Progress;
use redrive::config::{Setting, with_vault};

/// How often the progress is read if nothing happens in this process.
const SHOW_ANYWAY: Duration = Duration::from_secs(1);

/// Dead letters that the summary shows.
const DEAD_SHOWN: u32 = 10;

pub async fn run(setting: &Setting, args: RunArgs) -> Result<Exit> {
    let name = setting.pipeline_name(&args.handler.pipeline, !args.handler.command.is_empty())?;
    let (pipeline, configured_out) = setting.pipeline(name.clone(), &args.handler.overrides())?;
    let tasks = feed::open(&args.tasks)?;
    let redrive = setting.redrive().await?;
    feed::check(&args.tasks, &tasks, &redrive)?;
    let begun = redrive.now();
    let base = redrive.ledger(&name).await?;
    let buried_before = buried(&redrive, &name, begun).await?;
    let progress = Progress::start(base);
    let sink = progress.sink(setting.results(args.out.or(configured_out))?)?;
    let pipeline = with_vault(pipeline, setting.vault(&redrive)?.as_ref()).sink(sink);
    let stop = CancellationToken::new();
    let target = setting.fixed_target(&name);
    let worked = work_through(&redrive, (pipeline, args.max_wait), (tasks, target), &progress, &stop).await;
    progress.finish();
    let Worked { fed, signalled, waited, handed_on } = match worked {
        Ok(worked) => worked,
        Err(error) => {
            say_what_is_left(&redrive, &name).await;
            return Err(error);
        }
    };
    let end = redrive.ledger(&name).await?;
    let died = buried(&redrive, &name, begun).await? - buried_before;
    let interrupted = signalled && (end.open_by_itself() > 0 || !fed.complete);
    let replaying = end.replaying;
    let (done, left) = (end.done - base.done, end.open_by_itself());
    let run = Run { name, begun, done, died, left, replaying, fed, waited, handed_on, interrupted };
    run.summarise(&redrive, &progress).await?;
    Ok(run.exit())
}

/// Says how many jobs are left when a run ends early, if the store can still tell.
async fn say_what_is_left(redrive: &Redrive, name: &PipelineName) {
    match redrive.ledger(name).await {
        Ok(ledger) if ledger.open_by_itself() > 0 => {
            say!("{} {} queued; the same command goes on", paint(WAITING, "left:"), ledger.open_by_itself());
        }
        _ => {}
    }
}

/// How many jobs of the pipeline died in the hours since a time, each once; letters that are discarded meanwhile count.
async fn buried(redrive: &Redrive, name: &PipelineName, since: Timestamp) -> Result<i64> {
    let counts = redrive.store().counts(CountEvents { since, by: Span::Hour }).await?;
    let died = counts.iter().filter(|count| count.pipeline == *name && count.event == Event::Buried);
    Ok(died.map(|count| count.count).sum())
}

/// How the work went.
struct Worked {
    fed: Fed,
    /// Whether a signal ended it.
    signalled: bool,
    /// What was waited for, if waiting ended it.
    waited: Option<Box<Waited>>,
    /// Jobs that were handed on, by pipeline.
    handed_on: BTreeMap<PipelineName, u64>,
}

/// Feeds and works at the same time, with progress shown.
async fn work_through(
    redrive: &Redrive,
    (pipeline, max_wait): (Pipeline, Wait),
    (tasks, target): (Tasks, Option<String>),
    progress: &Progress,
    stop: &CancellationToken,
) -> Result<Worked> {
    let name = pipeline.name().clone();
    let feeder = Feed {
        redrive: redrive.clone(),
        pipeline: name.clone(),
        queued_max: pipeline.policy().queued_max,
        when_full: WhenFull::Wait,
        target,
        stop: stop.clone(),
    };
    let worker = waiting::at_most(redrive.worker(vec![pipeline]), max_wait);
    let handed_on = worker.handed_on();
    let say = {
        let progress = progress.clone();
        move |line: &str| progress.say(line)
    };
    let broken = feed::say_broken(&tasks, say.clone());
    let signalled = signals::watch(stop.clone(), worker.hurry(), say);
    let fed = CancellationToken::new();
    let feeding = async {
        let result = feeder.run(tasks, broken).await;
        match &result {
            Ok(fed) => feed::unsaid(fed.broken).iter().for_each(|line| progress.say(line)),
            Err(_) => stop.cancel(),
        }
        fed.cancel();
        result
    };
    let working = async {
        let result = worker.run(Until::DrainedAfter(fed.clone()), stop.clone()).await;
        // Whatever is not fed yet stays in the file: the next run goes on there.
        stop.cancel();
        result
    };
    let showing = async {
        let (mut events, mut shown_at) = (redrive.events().listen(), Instant::now());
        loop {
            tokio::time::sleep(progress.every()).await;
            // Where nothing happens nothing is read, but for what other processes do.
            if events.skip() == 0 && shown_at.elapsed() < SHOW_ANYWAY {
                continue;
            }
            shown_at = Instant::now();
            if let (Ok(ledger), Ok(held)) = (redrive.ledger(&name).await, redrive.list_breakers(Some(&name)).await) {
                progress.show(ledger, &held, redrive.now());
            }
        }
    };
    let both = async { tokio::join!(feeding, working) };
    let (fed, worked) = tokio::select! {
        ended = both => ended,
        () = showing => unreachable!("progress is shown for ever"),
    };
    let waited = match worked {
        Ok(()) => None,
        Err(redrive::Error::WaitedInVain(waited)) => Some(waited),
        Err(error) => return Err(error.into()),
    };
    let mut handed_on = handed_on.read();
    // Those of its own it worked on itself.
    handed_on.remove(&name);
    Ok(Worked { fed: fed?, signalled: signalled.is_cancelled(), waited, handed_on })
}

/// A run that has ended.
struct Run {
    name: PipelineName,
    begun: Timestamp,
    done: i64,
    died: i64,
    left: i64,
    /// Jobs that a replay has.
    replaying: i64,
    fed: Fed,
    waited: Option<Box<Waited>>,
    handed_on: BTreeMap<PipelineName, u64>,
    interrupted: bool,
}

impl Run {
    fn exit(&self) -> Exit {
        if self.interrupted {
            Exit::Interrupted
        } else if self.waited.is_some() {
            Exit::Waited
        } else if self.died > 0 || self.fed.known_dead > 0 {
            Exit::Dead
        } else if self.fed.broken > 0 {
            Exit::LinesRefused
        } else if self.replaying > 0 && self.fed.known_open > 0 {
            Exit::Paused
        } else {
            Exit::Ok
        }
    }

    async fn summarise(&self, redrive: &Redrive, progress: &Progress) -> Result<()> {
        let secs = progress.elapsed().as_secs_f64();
        say!("{} {}  in {secs:.1} s", paint(GOOD, "done:"), self.done);
        let dead = self.died + i64::try_from(self.fed.known_dead).unwrap_or(0);
        let style = if dead > 0 { BAD } else { GOOD };
        let before = match self.fed.known_dead {
            0 => String::new(),
            known => format!("  ({known} of them before)"),
        };
        say!("{} {dead}{before}", paint(style, "dead:"));
        if self.died > 0 {
            self.show_dead(redrive).await?;
        }
        if dead > 0 {
            say!("see them: redrive dead list --pipeline {}", self.name);
        }
        for (what, count) in [
            ("done before", self.fed.known_done),
            ("discarded before", self.fed.known_discarded),
            ("known already", self.fed.known_open),
        ] {
            if count > 0 {
                say!("{what}: {count}");
            }
        }
        if self.replaying > 0 {
            say!(
                "{} {} wait in a replay: `redrive replay list` shows it, `redrive replay resume` goes on with it",
                paint(WAITING, "replaying:"),
                self.replaying
            );
        }
        waiting::show_handed_on(redrive, self.handed_on.clone()).await?;
        if self.fed.broken > 0 {
            say!("{} {}, not enqueued", paint(BAD, "broken lines:"), self.fed.broken);
        }
        if let Some(waited) = &self.waited {
            waiting::show(waited, redrive.now());
        }
        if self.interrupted || self.waited.is_some() {
            say!("{} {}; the same command goes on", paint(WAITING, "left:"), self.left);
        }
        Ok(())
    }

    async fn show_dead(&self, redrive: &Redrive) -> Result<()> {
        let filter = DeadFilter { pipeline: Some(self.name.clone()), since: Some(self.begun), ..DeadFilter::default() };
        let params = ListDead { filter, limit: DEAD_SHOWN, cursor: None, with_failures: false };
        let page = redrive.store().list_dead(params).await?;
        for letter in &page.items {
            let told = |code: &&String| !letter.message.starts_with(code.as_str());
            let code = letter.code.as_ref().filter(told).map(|code| format!(" {}", cut(code, 40))).unwrap_or_default();
            let message = cut(&letter.message, 100);
            let crashes = if letter.crashes > 0 { format!(", crashes {}", letter.crashes) } else { String::new() };
            say!("  {}  {}{code}: {message}  (attempts {}{crashes})", letter.id, letter.reason, letter.attempts);
        }
        if page.next.is_some() {
            say!("  …");
        }
        Ok(())
    }
}
