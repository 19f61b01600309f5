//! `redrive store copy`: everything of a store to another.

use anyhow::Result;
use redrive::config::Setting;
use redrive::copies::{Copied, CopyProgress, StoreCopy};

use crate::args::StoreCopyArgs;
use crate::commands::filter::actor;
use crate::exit::{Exit, usage};
use crate::output::json;
use crate::output::paint::{BAD, GOOD, WAITING, paint};
use crate::output::print::{out, say};
use crate::output::progress::Counter;
use crate::output::{table, times};

pub async fn run(setting: &Setting, args: StoreCopyArgs) -> Result<Exit> {
    let StoreCopyArgs { from, to, vault, from_vault, allow_missing, abort, json } = args;
    if abort {
        return give_up(setting, &from, json).await;
    }
    let to = to.ok_or_else(|| usage("name the store to fill"))?;
    let asked = StoreCopy { from, to, vault, from_vault, allow_missing, by: actor() };
    let counter = Counter::start("rows copied");
    let copied = setting
        .copy_store(&asked, |progress| match progress {
            CopyProgress::Watching(workers) => {
                say!("watching for some seconds whether {} still {}", workers.join(", "), lives(&workers));
            }
            CopyProgress::At { part, done, total } => {
                counter.note(part.to_owned());
                counter.show(done, total);
            }
            CopyProgress::Counting => counter.finish(),
        })
        .await;
    counter.finish();
    tell(&copied?, json)
}

const fn lives(workers: &[String]) -> &'static str {
    if workers.len() == 1 { "works" } else { "work" }
}

async fn give_up(setting: &Setting, from: &str, json: bool) -> Result<Exit> {
    let place = setting.abort_copy(from, &actor()).await?;
    if json {
        json::document(&serde_json::json!({"given_up": place}))?;
        return Ok(Exit::Ok);
    }
    match place {
        Some(to) => {
            out!("{} {from} can be worked on again; what has come to {to} is of no use: remove it", paint(GOOD, "✓"))?;
        }
        None => out!("{from} is not being copied")?,
    }
    Ok(Exit::Ok)
}

fn tell(copied: &Copied, json: bool) -> Result<Exit> {
    let exit = if copied.problems.is_empty() { Exit::Ok } else { Exit::NotSound };
    if json {
        json::document(copied)?;
        return Ok(exit);
    }
    let Copied { from, to, finished_before, given_back, parts, payloads, problems, .. } = copied;
    if let Some(at) = finished_before {
        out!("{} {to} has all of {from} since {}: nothing was done", paint(GOOD, "✓"), times::second(*at))?;
        return Ok(exit);
    }
    let rows: Vec<_> = parts
        .iter()
        .filter(|part| part.source > 0)
        .map(|part| vec![part.label.to_owned(), part.source.to_string(), part.target.to_string()])
        .collect();
    table::print(&["~copied", ">source", ">target"], &rows)?;
    if *given_back > 0 {
        out!("{given_back} tasks that were left running are queued")?;
    }
    tell_payloads(copied)?;
    for problem in problems {
        out!("{} {problem}", paint(BAD, "✗"))?;
    }
    match exit {
        Exit::Ok => out!("{} both sides agree: every row, every ledger, both audits", paint(GOOD, "✓"))?,
        _ => out!("both sides agree; what is above is so in both")?,
    }
    if payloads.missing + payloads.damaged == 0 {
        out!("work on {to} from now on: what {from} does is not seen there")?;
    }
    Ok(exit)
}

fn tell_payloads(copied: &Copied) -> Result<()> {
    let payloads = &copied.payloads;
    let Some(vault) = &copied.vault else { return Ok(()) };
    if payloads.brought > 0 {
        let mib = payloads.bytes as f64 / (1024.0 * 1024.0);
        out!("{} payloads ({mib:.1} MiB) were brought to {vault}, each checked", payloads.brought)?;
    }
    if payloads.found > 0 {
        out!("{} payloads are in {vault}", payloads.found)?;
    }
    let wrong = payloads.missing + payloads.damaged;
    if wrong > 0 {
        let counted = format!("{} payloads are missing, {} damaged", payloads.missing, payloads.damaged);
        out!("{} {counted}: in {} already, and so in the copy", paint(WAITING, "!"), copied.from)?;
        for named in &payloads.named {
            out!("  {named}")?;
        }
        let more = wrong - (payloads.named.len() as u64).min(wrong);
        if more > 0 {
            out!("  and {more} more")?;
        }
    }
    Ok(())
}
