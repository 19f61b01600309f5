//! `redrive doctor`: says what is well and what is not.

use anyhow::Result;
use redrive::Error;
use redrive::doctor::{Finding, examine};
use redrive_core::failures::with_sources;

use super::filter::actor;
use crate::advice;
use crate::args::{DoctorArgs, Global};
use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{BAD, GOOD, WAITING, paint};
use crate::output::print::out;
use crate::setting;

pub async fn run(global: &Global, args: DoctorArgs) -> Result<Exit> {
    let DoctorArgs { json, compact } = args;
    if compact {
        return self::compact(global, json).await;
    }
    let mut findings = match setting::load(global) {
        Ok(setting) => examine(&setting).await,
        Err(error) => vec![Finding::new("configuration", Err(with_sources(&error)))],
    };
    for finding in &mut findings {
        if let Some(Error::Store(error)) = &finding.error {
            finding.found = advice::told(error);
        }
    }
    if json {
        json::document(&findings)?;
    } else {
        for Finding { check, ok, warning, found, .. } in &findings {
            let mark = match (*ok, *warning) {
                (true, false) => paint(GOOD, "✓"),
                (true, true) => paint(WAITING, "!"),
                (false, _) => paint(BAD, "✗"),
            };
            out!("{mark} {check}: {found}")?;
        }
    }
    Ok(if findings.iter().all(|finding| finding.ok) { Exit::Ok } else { Exit::Failed })
}

/// Gives unused space back, while nobody works.
async fn compact(global: &Global, json: bool) -> Result<Exit> {
    let setting = setting::load(global)?;
    let redrive = setting.redrive_existing().await?;
    let compacted = redrive.compact(&actor()).await?;
    if json {
        json::document(&compacted)?;
    } else if setting.location.is_shared() {
        out!(
            "PostgreSQL uses the space again by itself; VACUUM FULL gives it back to the disk, and locks each table meanwhile"
        )?;
    } else {
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0));
        out!("the store had {} and has {} now", mib(compacted.before_bytes), mib(compacted.after_bytes))?;
    }
    Ok(Exit::Ok)
}
