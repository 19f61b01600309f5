//! What `run` and `push` say of the tasks they feed, and ask about them.

use std::io::{self, BufRead, IsTerminal};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, Result};
use redrive::tasks::{BrokenLine, Fed, Feed, Naming, Recognised, Survey, Tasks, TasksError};
use redrive::{Redrive, StoreError};
use redrive_client::Desk;
use redrive_core::ids::PipelineName;
use serde_json::{Value, json};

use super::filter::actor;
use crate::args::TaskArgs;
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::print::{out, say};
use crate::output::typed::REDRIVE;
use crate::output::{json as print_json, table};
use crate::setting::Setting;

/// Broken lines that are shown; the rest is only counted.
const BROKEN_SHOWN: u64 = 20;

/// Opens the file that was named; `-` is standard input.
pub fn open(args: &TaskArgs) -> Result<Tasks> {
    let format = args.format.of_tasks();
    let tasks = match args.file == Path::new("-") {
        true => {
            let stdin = io::stdin().as_fd().try_clone_to_owned().context("cannot read standard input")?;
            Tasks::stream("standard input", stdin, format)
        }
        false => Tasks::open(&args.file, format)?,
    };
    Ok(if args.strict { tasks.rereadable()? } else { tasks })
}

/// By what the tasks are known; says which round they are of, and asks whether they may be new where that is not sure.
pub async fn naming(
    setting: &Setting,
    redrive: &Desk,
    pipeline: &PipelineName,
    args: &TaskArgs,
    tasks: &Tasks,
) -> Result<Naming> {
    let round = match (&args.round, args.again) {
        (None, true) => {
            let (round, begins) = match args.dry_run {
                true => (redrive.next_round(pipeline).await?, "would begin"),
                false => (redrive.begin_round(pipeline, &actor()).await?, "begins"),
            };
            say!("round {round} {begins}; to go on with it later: --round {round}");
            Some(round)
        }
        (round, _) => round.clone(),
    };
    let fields = if args.key.is_empty() { setting.key_fields(pipeline) } else { args.key.clone() };
    let input_bytes_max = setting.input_bytes_max(pipeline);
    let naming = Naming { round, fields, by_line: None, input_bytes_max };
    match redrive.recognise_tasks(pipeline, tasks, &naming).await? {
        Recognised::AsItIs => Ok(naming),
        Recognised::ByLine(file) => Ok(Naming { by_line: Some(file), ..naming }),
        Recognised::Changed { new } => {
            let place = tasks.name();
            say!("{place} is not known here in this form: {new} of its tasks are new");
            say!("Tasks that ran before the upgrade are known by their unchanged file. If this is");
            say!("such a file and was changed since, they run again, this once.");
            match args.yes || args.dry_run || is_yes("Run them? [y/N]") {
                true => Ok(naming),
                false => Err(TasksError::Changed { place: place.to_owned(), new }.into()),
            }
        }
    }
}

/// Whether somebody is there and says yes.
fn is_yes(question: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    say!("{question}");
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Refuses the tasks if any is broken, where that was asked for.
pub fn check(args: &TaskArgs, tasks: &Tasks, redrive: &Desk, naming: &Naming) -> Result<()> {
    if args.strict {
        tasks.check(&*redrive.intake(), naming)?;
    }
    Ok(())
}

/// Says which lines are broken, but not too many of them.
pub fn say_broken<S: Fn(&str)>(tasks: &Tasks, say: S) -> impl FnMut(BrokenLine) + use<S> {
    let (place, mut shown) = (tasks.name().to_owned(), 0);
    move |line| {
        shown += 1;
        if shown <= BROKEN_SHOWN {
            say(&format!("{place}:{line}"));
        }
    }
}

/// How many broken lines were not said.
pub fn unsaid(broken: u64) -> Option<String> {
    (broken > BROKEN_SHOWN).then(|| format!("and {} more broken lines", broken - BROKEN_SHOWN))
}

/// What a limit left, in words, if it was reached.
pub fn limit(fed: &Fed) -> Option<String> {
    let text = match fed.not_taken {
        None => "the same command takes the next tasks".to_owned(),
        Some(0) => "what comes later was not waited for".to_owned(),
        Some(left) => format!("{left} more tasks had come and are NOT taken: give them again, or leave out --limit"),
    };
    fed.limited.then_some(text)
}

/// What is said of a last line that was left out.
pub fn unfinished(fed: &Fed) -> Option<String> {
    let why = cut(fed.unfinished.as_ref()?, 60);
    Some(format!(
        "the last line of the file is still being written: {why}\n  the same command takes it once it is whole"
    ))
}

/// What is said of letters of before that are too many to be replayed at once.
pub fn untaken(fed: &Fed, pipeline: &PipelineName) -> Option<String> {
    let (noted, dead) = (fed.dead.len() as u64, fed.known_dead);
    let all = format!("{REDRIVE} replay start --pipeline {pipeline}");
    (noted > 0 && noted < dead).then(|| format!("only {noted} of the {dead} that died before are taken at once: {all}"))
}

/// Whether lines of the input were not taken, so that they have to be given again.
pub fn lines_refused(fed: &Fed) -> bool {
    fed.broken > 0 || fed.not_taken.is_some_and(|left| left > 0)
}

/// What is known of tasks, in words: each count that is not zero.
pub fn known(fed: &Fed) -> Vec<String> {
    let counts = [
        ("done before", fed.known_done),
        ("dead before", fed.known_dead),
        ("discarded before", fed.known_discarded),
        ("queued already or twice in the file", fed.known_open),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} {what}")).collect()
}

/// Says what would be enqueued and what is known; nothing is changed, and no store is made for it.
pub async fn dry_run(setting: &Setting, pipeline: PipelineName, args: &TaskArgs, json: bool) -> Result<Exit> {
    let tasks = open(args)?;
    let redrive = match setting.desk().await {
        Err(redrive::Error::Store(StoreError::Missing { .. })) => Desk::Here(Redrive::open("memory:").await?),
        opened => opened?,
    };
    let naming = naming(setting, &redrive, &pipeline, args, &tasks).await?;
    check(args, &tasks, &redrive, &naming)?;
    let feed =
        Feed { naming, limit: args.limit, ..Feed::new(redrive.intake(), pipeline, redrive::CancellationToken::new()) };
    let broken = say_broken(&tasks, |line| say!("{line}"));
    let survey = feed.survey(tasks, broken).await?;
    let fed = &survey.fed;
    unsaid(fed.broken).iter().for_each(|line| say!("{line}"));
    match json {
        true => print_json::document(&surveyed(&feed, &survey))?,
        false => print_survey(&feed, &survey)?,
    }
    Ok(if fed.broken > 0 { Exit::LinesRefused } else { Exit::Ok })
}

fn surveyed(feed: &Feed, Survey { fed, examples }: &Survey) -> Value {
    json!({
        "pipeline": feed.pipeline,
        "round": feed.naming.round,
        "new": fed.accepted,
        "limited": fed.limited,
        "known": {"done": fed.known_done, "dead": fed.known_dead, "discarded": fed.known_discarded, "open": fed.known_open},
        "broken": fed.broken,
        "unfinished": fed.unfinished,
        "examples": examples.iter().map(|job| json!({"key": job.key, "input": job.input})).collect::<Vec<_>>(),
    })
}

fn print_survey(feed: &Feed, Survey { fed, examples }: &Survey) -> Result<()> {
    let round = feed.naming.round.as_ref().map(|round| format!(", round {round}")).unwrap_or_default();
    let more = if fed.limited { ", and more are left in the file" } else { "" };
    out!("pipeline {}{round}: {} would be enqueued{more}", feed.pipeline, fed.accepted)?;
    for known in known(fed) {
        out!("  {known}")?;
    }
    if fed.broken > 0 {
        out!("  {} broken lines", fed.broken)?;
    }
    if let Some(unfinished) = unfinished(fed) {
        out!("  left out: {unfinished}")?;
    }
    if !examples.is_empty() {
        out!("the first of them, by key:")?;
    }
    for job in examples {
        let key = cut(job.key.as_deref().unwrap_or("-"), 40);
        let input = serde_json::to_string(&job.input)?;
        let room = table::line_width().saturating_sub(key.chars().count() + 4);
        out!("  {key}  {}", cut(&input, room))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use redrive_core::ids::JobId;
    use redrive_core::time::Timestamp;

    use super::*;

    #[test]
    fn letters_that_are_too_many_are_told() {
        let pipeline = "shop".parse().expect("a name");
        let dead = vec![JobId::new(Timestamp::from_millis(0), 0); 2];
        let fed = Fed { known_dead: 3, dead, ..Fed::default() };
        let told = untaken(&fed, &pipeline).expect("one is left");
        assert!(told.contains("only 2 of the 3") && told.contains("redrive replay start --pipeline shop"), "{told}");
        assert_eq!(untaken(&Fed { known_dead: 2, ..fed.clone() }, &pipeline), None);
        assert_eq!(untaken(&Fed { dead: Vec::new(), ..fed }, &pipeline), None, "they were not asked for");
    }
}
