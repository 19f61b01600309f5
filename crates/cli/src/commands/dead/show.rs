//! `redrive dead show`: the original input and every attempt.

use std::io;

use anyhow::{Result, bail};
use redrive::Error;
use redrive::dead::{DeadError, NotDead};
use redrive::export::{curl, har};
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;
use redrive_core::payloads::{Payload, Unreadable, UnreadableWhy};
use redrive_core::settlements::TARGET_ON_HOLD;

use super::requests;
use crate::args::DeadShowArgs;
use crate::exit::Exit;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::paint::{BAD, DIM, HEADING, paint};
use crate::output::print::out;
use crate::output::problem::within;
use crate::output::report::figures::count;
use crate::output::table;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: DeadShowArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let id = redrive.find_job(&args.id).await.map_err(|error| within(setting, error))?;
    let letter = match redrive.dead_letter(id).await {
        Err(Error::Dead(DeadError::NotDead(alive @ NotDead { state: Some(_), .. }))) => {
            bail!("{alive}: `redrive job show {id}` shows it")
        }
        found => found.map_err(|error| within(setting, error))?,
    };
    if args.json {
        json::document(&letter)?;
    } else if args.curl {
        let Some(request) = requests(setting).last(&letter) else {
            bail!("what task {id} asked for is not known: its pipeline sends no request, and its input has no url");
        };
        out!("{}", curl(&request))?;
    } else if args.har {
        let bodies = redrive.logged_bodies(setting.vault_of(&redrive)?.as_ref(), &letter).await?;
        let mut requests = requests(setting);
        json::document(&har(&letter, |failure| requests.of(&letter, Some(failure)), &bodies))?;
    } else {
        print(&letter)?;
    }
    Ok(Exit::Ok)
}

fn print(letter: &DeadLetter) -> Result<()> {
    out!("{} {}", paint(HEADING, "dead letter"), name(letter))?;
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let fields = [
        ("id", letter.id.to_string()),
        ("pipeline", letter.pipeline.to_string()),
        ("key", optional(&letter.key)),
        ("target", optional(&letter.target)),
        ("reason", letter.reason.to_string()),
        ("cause", letter.cause.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)),
        (
            "gate",
            letter.verdict.as_ref().map_or_else(|| letter.gate.to_string(), |said| format!("{}: {said}", letter.gate)),
        ),
        ("tried", format!("{} attempts, {} crashes, {} replays", letter.attempts, letter.crashes, letter.replays)),
        ("accepted", letter.accepted_at.to_string()),
        ("died", letter.died_at.to_string()),
        ("payload", payload(letter)),
    ];
    let rules = letter.definition.as_ref().map(|version| ("rules", version.to_string()));
    let round = letter.round.as_ref().map(|round| ("round", round.to_string()));
    for (name, value) in
        fields.into_iter().chain(round).chain(rules).chain(letter.task_id.clone().map(|id| ("task id", id)))
    {
        out!("  {} {}", paint(DIM, format!("{name:<9}")), table::beside(&harmless(&value), 12))?;
    }
    out!("{}", paint(HEADING, "input"))?;
    out!("{}", indent(&json::pretty(&letter.input)?))?;
    if let Some(original) = &letter.original {
        out!("{}", paint(HEADING, "input as it was accepted"))?;
        out!("{}", indent(&json::pretty(original)?))?;
    }
    if let Some(origin) = letter.origin.as_ref().filter(|origin| !origin.details.is_empty() || origin.group.is_some()) {
        out!("{}", paint(HEADING, "where it came from"))?;
        out!("{}", indent(&json::pretty(origin)?))?;
    }
    Ok(print_failures(letter.failures.as_deref().unwrap_or_default())?)
}

/// What a letter is called in text: by its number, if it has one.
fn name(letter: &DeadLetter) -> String {
    letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string())
}

/// The payload of a letter: its hash, its full address, its size, how to see it, or why it cannot be seen.
fn payload(letter: &DeadLetter) -> String {
    let Some(hash) = &letter.payload else { return "-".to_owned() };
    if letter.payload_missing {
        return format!("{hash}, missing: the letter was imported without its bytes");
    }
    let size = match letter.saved_payload() {
        Some(Payload { truncated: true, size_bytes, total_bytes: Some(total), .. }) => {
            format!("the first {} of {} bytes", grouped(*size_bytes), grouped(*total))
        }
        Some(Payload { size_bytes, .. }) => format!("{} bytes", grouped(*size_bytes)),
        None => "of unknown size".to_owned(),
    };
    let address = letter.payload_address.as_ref().map(|address| format!("\n{address}")).unwrap_or_default();
    if let Some(Unreadable { why, since }) = letter.payload_unreadable {
        let found = match why {
            UnreadableWhy::Missing => "the vault does not have it",
            UnreadableWhy::Damaged => "what the vault has is not what was kept",
        };
        let (why, name) = (why.as_str(), name(letter));
        return format!(
            "{hash}{address}\n{why}: {found}, since {since}; fetch it again: {REDRIVE} retry {name} --refetch"
        );
    }
    format!("{hash}{address}\n{size}; see it: {REDRIVE} payload show {}", name(letter))
}

fn grouped(bytes: u64) -> String {
    count(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// Prints every failed attempt; what one says again in the same words is not repeated.
pub fn print_failures(failures: &[Failure]) -> io::Result<()> {
    let mut said = None;
    for failure in failures {
        print_failure(failure)?;
        let text = failure.stack.as_ref().or(failure.stderr.as_ref());
        match text {
            Some(text) if said == Some(text) => out!("    {}", paint(DIM, "(the same output as before)"))?,
            Some(text) => out!("{}", indent(text.trim_end()))?,
            None => {}
        }
        said = text;
    }
    Ok(())
}

fn print_failure(failure: &Failure) -> io::Result<()> {
    let title = match failure.code.as_deref() {
        Some(TARGET_ON_HOLD) => "given up: it waited too long for its target, which last failed with".to_owned(),
        _ if failure.crash => format!("crash in attempt {}", failure.attempt),
        _ => format!("attempt {}", failure.attempt),
    };
    let took = failure.duration_ms.map(|ms| format!(", took {ms} ms")).unwrap_or_default();
    out!("{} {}", paint(HEADING, title), paint(DIM, format!("{}{took}", failure.at)))?;
    let code = failure.code.as_ref().map(|code| format!(" {code}")).unwrap_or_default();
    let code = harmless(&code);
    // The message begins where the reason ends; its other lines are indented.
    let begun = format!("{}{code}: ", failure.reason);
    let message = indent(&format!("{begun}{}", failure.message));
    let message = message.trim_start().strip_prefix(failure.reason.as_str()).unwrap_or(&message);
    out!("  {}{message}", paint(BAD, failure.reason))?;
    let status = failure.http_status.map(|status| status.to_string());
    let wait = failure.retry_after_secs.map(|secs| format!("{secs} s"));
    let lost = failure.payload.as_ref().and_then(|payload| payload.lost.as_ref()).map(|why| format!("lost: {why}"));
    for (name, value) in [
        ("task id", &failure.task_id),
        ("error type", &failure.error_type),
        ("stage", &failure.stage),
        ("status", &status),
        ("target", &failure.target),
        ("proxy", &failure.proxy),
        ("retry after", &wait),
        ("payload", &lost),
    ] {
        if let Some(value) = value {
            out!("  {} {}", paint(DIM, format!("{name:<11}")), table::beside(&harmless(value), 14))?;
        }
    }
    Ok(())
}

/// The longest text that is shown whole, in characters; `--json` has all of it.
const SHOWN_CHARS_MAX: usize = 20_000;

/// Text of unknown origin, indented and made safe for a terminal.
fn indent(text: &str) -> String {
    let text = match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}\n… {} more bytes: --json has all of it", &text[..end], text.len() - end),
        None => text.to_owned(),
    };
    table::wrapped(&harmless(&text), "    ")
}
