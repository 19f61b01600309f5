//! `redrive cause list`.

use std::io;

use anyhow::Result;
use redrive::causes::{CausesAsked, FoundCauses};
use redrive::contract::CauseView;
use redrive_core::causes::Trend;
use redrive_core::time::Timestamp;
use serde_json::json;

use crate::args::CauseListArgs;
use crate::exit::Exit;
use crate::output::bars::spark;
use crate::output::foreign::cut;
use crate::output::json;
use crate::output::print::{out, say};
use crate::output::report::figures;
use crate::output::retrying;
use crate::output::table;
use crate::output::times::ago;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: CauseListArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let CauseListArgs { pipeline, state, owner, all, sort, limit, json } = args;
    let retrying = redrive.retrying(pipeline.as_ref()).await?;
    let of = pipeline.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
    let asked = CausesAsked { pipeline, states: state, owner, all, sort, limit };
    let FoundCauses { causes, more, dead } = redrive.list_causes(asked).await?;
    if json {
        for cause in &causes {
            json::line(cause)?;
        }
        for view in &retrying {
            json::line(&json!({ "retrying": view }))?;
        }
    } else {
        print(&causes, dead, redrive.now())?;
        if !causes.is_empty() {
            let dead = figures::counted(i64::try_from(dead).unwrap_or(i64::MAX), "dead letter", "dead letters");
            out!("shares are of {dead}{of}")?;
        }
        retrying::print(&retrying)?;
    }
    if more {
        say!("there are more: --limit shows them");
    }
    Ok(Exit::Ok)
}

/// Prints causes; `dead` is how many letters their shares are of.
pub fn print(causes: &[CauseView], dead: u64, now: Timestamp) -> io::Result<()> {
    if causes.is_empty() {
        return out!("{}", if dead == 0 { "no causes: nothing is dead" } else { "no causes are like that" });
    }
    let row = |cause: &CauseView| {
        vec![
            cause.id.to_string(),
            cause.state.to_string(),
            cause.dead.to_string(),
            figures::percent(cause.dead as f64 / dead.max(1) as f64),
            spark(&two_by_two(&cause.trend)),
            ago(cause.first_seen, now),
            ago(cause.last_seen, now),
            cause.pipeline.to_string(),
            reason(cause),
            targets(cause),
            cause.owner.clone().unwrap_or_else(|| "-".to_owned()),
            cause.title.clone(),
        ]
    };
    let headings = [
        "id",
        "state",
        ">died",
        "?>share",
        "?last 24 h",
        "?>first",
        ">last",
        "~=pipeline",
        "~reason",
        "~where",
        "~owner",
        "what",
    ];
    table::print_titled(&headings, &causes.iter().map(row).collect::<Vec<_>>())
}

/// The reason, with the status that tells apart what else would look the same.
fn reason(cause: &CauseView) -> String {
    match cause.http_status {
        Some(status) if status >= 400 => format!("{} {status}", cause.reason),
        _ => cause.reason.to_string(),
    }
}

/// The trend in half as many columns.
fn two_by_two(trend: &Trend) -> Vec<i64> {
    trend.0.chunks(2).map(|hours| hours.iter().sum()).collect()
}

/// Where a cause hits: its target, or the first of several.
fn targets(cause: &CauseView) -> String {
    match (cause.targets.first(), cause.targets_count) {
        (None, _) => "-".to_owned(),
        (Some(target), 1) => cut(target, 28),
        (Some(target), n) => format!("{} +{}", cut(target, 24), n - 1),
    }
}
