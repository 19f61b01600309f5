//! `redrive doctor`: checks the configuration, the store, its disk and the commands.

use anyhow::Result;
use redrive::config::Setting;
use redrive::handler::exec::Command;
use redrive_core::failures::with_sources;
use redrive_store::{Options, StoreError};
use serde::Serialize;

use crate::advice;
use crate::args::Global;
use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{BAD, GOOD, paint};
use crate::output::print::out;
use crate::setting;

/// Free disk space below which it warns.
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;

#[derive(Serialize)]
struct Finding {
    check: &'static str,
    ok: bool,
    found: String,
}

fn finding(check: &'static str, result: Result<String, String>) -> Finding {
    match result {
        Ok(found) => Finding { check, ok: true, found },
        Err(found) => Finding { check, ok: false, found },
    }
}

pub async fn run(global: &Global, json: bool) -> Result<Exit> {
    let findings = match setting::load(global) {
        Ok(setting) => look(&setting).await,
        Err(error) => vec![finding("configuration", Err(with_sources(&error)))],
    };
    if json {
        json::document(&findings)?;
    } else {
        for Finding { check, ok, found } in &findings {
            let mark = if *ok { paint(GOOD, "✓") } else { paint(BAD, "✗") };
            out!("{mark} {check}: {found}")?;
        }
    }
    Ok(if findings.iter().all(|finding| finding.ok) { Exit::Ok } else { Exit::Failed })
}

async fn look(setting: &Setting) -> Vec<Finding> {
    let config = match &setting.config.path {
        Some(path) => format!("{}, {} pipelines", path.display(), setting.config.pipeline.len()),
        None => "no redrive.toml, defaults hold".to_owned(),
    };
    let mut findings = vec![finding("configuration", Ok(config))];
    for (name, pipeline) in &setting.config.pipeline {
        let [program, args @ ..] = pipeline.command.as_slice() else { continue };
        let mut command = Command::new(program, args.iter().map(Into::into));
        command.folder = pipeline.folder.clone();
        let found = command.check().map(|()| format!("{program} (pipeline {name})"));
        findings.push(finding("command", found.map_err(|why| format!("pipeline {name}: {why}"))));
    }
    findings.extend(look_at_store(setting).await);
    findings
}

async fn look_at_store(setting: &Setting) -> Vec<Finding> {
    let store = match redrive_store::open(&setting.location.to_string(), Options::default()).await {
        Ok(store) => store,
        Err(StoreError::Missing { place }) => {
            let found = format!("{place} is not there yet; the first run makes it");
            return vec![finding("store", Ok(found))];
        }
        Err(error) => return vec![finding("store", Err(advice::told(&error)))],
    };
    let health = match store.health().await {
        Ok(health) => health,
        Err(error) => return vec![finding("store", Err(error.to_string()))],
    };
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let location = format!("{}, {} MiB", health.location, mib(health.size_bytes));
    let free = match health.free_bytes {
        Some(free) if free < FREE_BYTES_MIN => Err(format!("only {} MiB are free: make room", mib(free))),
        Some(free) => Ok(format!("{} MiB are free", mib(free))),
        None => Ok("not on a disk".to_owned()),
    };
    let whole = match health.problems.is_empty() {
        true => Ok("nothing is damaged".to_owned()),
        false => Err(health.problems.join("; ")),
    };
    let workers = store.list_workers().await.map(|workers| {
        let gone = workers.iter().filter(|worker| !worker.alive).count();
        let note = if gone > 0 { "; the next worker takes over from those that are gone" } else { "" };
        format!("{} at work, {gone} gone{note}", workers.len() - gone)
    });
    let mut findings = vec![
        finding("store", Ok(location)),
        finding("version", Ok(format!("schema {}, {}", health.schema_version, health.engine))),
        finding("integrity", whole),
        finding("disk", free),
        finding("workers", workers.map_err(|error| error.to_string())),
    ];
    findings.extend(look_at_spool(setting));
    findings
}

/// What waits for a vault that is away; nothing is said of an empty spool.
fn look_at_spool(setting: &Setting) -> Option<Finding> {
    let spool = setting.spool()?;
    let found = match spool.waiting() {
        Ok(waiting) if waiting.payloads == 0 => return None,
        Ok(waiting) => Ok(format!(
            "{} payloads, {} KiB, wait in {} for the vault; the next worker brings them",
            waiting.payloads,
            waiting.bytes.div_ceil(1024),
            spool.folder().display()
        )),
        Err(error) => Err(format!("{}: {error}", spool.folder().display())),
    };
    Some(finding("spool", found))
}
