//! `redrive alert list`: what fires, what was over lately, and how the sinks fare.

use anyhow::Result;
use redrive::alerts::{AlertList, SinkState};
use redrive::contract::AlertView;
use redrive_core::alerts::AlertStanding;
use redrive_core::time::Timestamp;

use crate::args::AlertListArgs;
use crate::exit::Exit;
use crate::output::json;
use crate::output::print::out;
use crate::output::table::print_folded;
use crate::output::times::second;
use crate::output::typed::REDRIVE;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: AlertListArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let list = redrive.list_alerts(&setting.watched_by_server(), args.all, args.state).await?;
    if args.json {
        json::document(&list)?;
        return Ok(Exit::Ok);
    }
    let AlertList { alerts, sinks, unwatched } = list;
    match alerts.is_empty() {
        true if args.state.is_some_and(|state| state != AlertStanding::Firing) => out!("no alert is like that")?,
        true => out!("nothing fires, as far as it was judged: `{REDRIVE} alert check` judges now")?,
        false => {
            let now = redrive.now();
            let rows: Vec<_> = alerts.iter().map(|view| alert_row(view, now)).collect();
            print_folded(&["state", "~=alert", "~since", "~over", ">told", "~owner", "~seen by", "what"], &rows)?;
        }
    }
    if !sinks.is_empty() {
        out!("")?;
        let rows: Vec<_> = sinks.iter().map(sink_row).collect();
        print_folded(&["~=sink", "kind", "state", ">waiting", "~last told", "~next try", "error"], &rows)?;
    }
    if !unwatched.is_empty() {
        let names: Vec<_> = unwatched.iter().map(|name| name.as_str()).collect();
        out!("not watched from here: {}", names.join(", "))?;
    }
    Ok(Exit::Ok)
}

fn alert_row(AlertView { alert, care, .. }: &AlertView, now: Timestamp) -> Vec<String> {
    let state = match (alert.is_firing(), care.snoozed_at(now)) {
        (_, Some(snoozed)) => format!("snoozed until {}", second(snoozed.until)),
        (true, None) => "firing".to_owned(),
        (false, None) => "over".to_owned(),
    };
    let over = alert.over_at.map(second).unwrap_or_default();
    let (key, told) = (alert.key.as_str().to_owned(), alert.tellings.to_string());
    let seen = care.acknowledged_of(alert).map(|seen| seen.by.name.clone()).unwrap_or_default();
    let owner = care.owner.clone().unwrap_or_default();
    vec![state, key, second(alert.since), over, told, owner, seen, alert.finding.summary.clone()]
}

fn sink_row(sink: &SinkState) -> Vec<String> {
    let view = &sink.view;
    let state = match (sink.trouble(), view.told_at) {
        (Some(_), _) => "failing",
        (None, Some(_)) => "well",
        (None, None) => "untried",
    };
    let time = |at: Option<_>| at.map(second).unwrap_or_default();
    vec![
        view.name.clone(),
        sink.kind.clone().unwrap_or_else(|| "elsewhere".to_owned()),
        state.to_owned(),
        view.waiting.to_string(),
        time(view.told_at),
        time(view.next_try),
        sink.trouble().unwrap_or_default().to_owned(),
    ]
}
