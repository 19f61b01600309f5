//! `redrive doctor`: says what is well and what is not.

use anyhow::Result;
use redrive::Error;
use redrive::doctor::{Finding, examine};
use redrive_client::Server;

use super::filter::actor;
use crate::advice;
use crate::args::{DoctorArgs, Global};
use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{BAD, GOOD, WAITING, paint};
use crate::output::print::out;
use crate::output::problem;
use crate::output::typed::in_text;
use crate::setting;

pub async fn run(global: &Global, args: DoctorArgs) -> Result<Exit> {
    let DoctorArgs { json, compact } = args;
    if compact {
        return self::compact(global, json).await;
    }
    let mut findings = match setting::load(global) {
        Ok(setting) => match setting.server() {
            Some(server) => at_server(server).await,
            None => examine(&setting).await,
        },
        Err(error) => vec![Finding::new("configuration", Err(format!("{error:#}")))],
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
            out!("{mark} {check}: {}", in_text(found))?;
        }
    }
    Ok(if findings.iter().all(|finding| finding.ok) { Exit::Ok } else { Exit::Failed })
}

/// Whether a server answers, understands this version, and what it lets one do. Its store and its vault are looked after there.
async fn at_server(server: &Server) -> Vec<Finding> {
    let address = server.address();
    let who = match server.whoami().await {
        Ok(who) => who,
        Err(error) => return vec![Finding::new("server", Err(problem::explain(&error.into()).0))],
    };
    let pipelines: Vec<_> = who.pipelines.iter().map(ToString::to_string).collect();
    let pipelines = if pipelines.is_empty() { "all pipelines".to_owned() } else { pipelines.join(", ") };
    let until = who.expires_at.map(|at| format!(", until {at}")).unwrap_or_default();
    vec![
        Finding::new("server", Ok(format!("{address} answers, redrive {}", who.version))),
        Finding::new("token", Ok(format!("{} ({}), for {pipelines}{until}", who.name, who.role))),
    ]
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
