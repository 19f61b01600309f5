//! `redrive alert check`: for cron, or by hand.

use std::io::IsTerminal;

use anyhow::Result;
use redrive::alerts::AlertList;
use redrive_core::alerts::Alert;

use super::lines;
use crate::args::AlertCheckArgs;
use crate::exit::Exit;
use crate::output::json;
use crate::output::print::out;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: AlertCheckArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let watching = setting.watching();
    if args.dry_run {
        let firing = redrive.preview_alerts(&watching).await?;
        if args.json {
            json::document(&serde_json::json!({ "alerts": firing }))?;
        } else {
            show(&firing.iter().collect::<Vec<_>>())?;
        }
        return Ok(exit(firing.is_empty()));
    }
    let AlertList { mut alerts, sinks, .. } = redrive.check_alerts(&watching).await?;
    // Who snoozed an alert does not want cron to mail it either.
    let now = redrive.now();
    alerts.retain(|view| view.needs_somebody(now));
    if args.json {
        json::document(&serde_json::json!({ "alerts": alerts, "sinks": sinks }))?;
    } else {
        show(&alerts.iter().map(|view| &view.alert).collect::<Vec<_>>())?;
        for sink in &sinks {
            match sink.trouble() {
                Some(why) => lines::say_failing(&sink.view, why),
                None if sink.view.waiting > 0 => lines::say_waiting(&sink.view),
                None => {}
            }
        }
    }
    Ok(exit(alerts.is_empty()))
}

/// Nothing is printed to a pipe if nothing fires: cron mails whatever is.
fn show(firing: &[&Alert]) -> Result<()> {
    if firing.is_empty() && std::io::stdout().is_terminal() {
        out!("nothing fires")?;
    }
    Ok(firing.iter().try_for_each(|alert| out!("{}", lines::firing(alert)))?)
}

const fn exit(quiet: bool) -> Exit {
    if quiet { Exit::Ok } else { Exit::Firing }
}
