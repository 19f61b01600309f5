//! `redrive alert ack`, `snooze`, `wake` and `assign`: what people do about alerts.

use anyhow::Result;
use redrive::config::units;
use redrive::contract::AlertView;
use redrive_core::alerts::{AlertKey, CareChange};

use super::super::filter::actor;
use crate::args::{AlertAckArgs, AlertAssignArgs, AlertKeys, AlertSnoozeArgs};
use crate::exit::{Exit, usage};
use crate::output::foreign::harmless;
use crate::output::print::out;
use crate::output::times::second;
use crate::setting::Setting;

pub async fn acknowledge(setting: &Setting, args: AlertAckArgs) -> Result<Exit> {
    let change = if args.undo { CareChange::Unacknowledge } else { CareChange::Acknowledge };
    run(setting, args.which, change).await
}

pub async fn snooze(setting: &Setting, args: AlertSnoozeArgs) -> Result<Exit> {
    let now = setting.desk().await?.now();
    let until = units::future(&args.until, now).map_err(usage)?;
    let why = args.why.filter(|why| !why.trim().is_empty());
    run(setting, args.which, CareChange::Snooze { until, why }).await
}

pub async fn wake(setting: &Setting, which: AlertKeys) -> Result<Exit> {
    run(setting, which, CareChange::Wake).await
}

pub async fn assign(setting: &Setting, args: AlertAssignArgs) -> Result<Exit> {
    run(setting, args.which, CareChange::Assign(args.to.filter(|owner| !owner.trim().is_empty()))).await
}

async fn run(setting: &Setting, which: AlertKeys, change: CareChange) -> Result<Exit> {
    let keys: Vec<AlertKey> = which.keys.into_iter().map(AlertKey::from).collect();
    for view in setting.desk().await?.care_for_alerts(&keys, &change, &actor()).await? {
        out!("{}", harmless(&told(&view, &change)))?;
    }
    Ok(Exit::Ok)
}

/// What was done about an alert, in words.
fn told(view: &AlertView, change: &CareChange) -> String {
    let key = view.alert.key.as_str();
    match change {
        CareChange::Acknowledge => {
            let by = view.care.acknowledged.as_ref().map_or_else(String::new, |seen| format!(" by {}", seen.by.name));
            format!("alert {key} is acknowledged{by}, until it doubles or fires anew")
        }
        CareChange::Unacknowledge => format!("alert {key} is not acknowledged any more"),
        CareChange::Snooze { until, .. } => {
            format!("alert {key} is snoozed until {}: nobody is told that it fires", second(*until))
        }
        CareChange::Wake => format!("alert {key} is told again"),
        CareChange::Assign(Some(owner)) => format!("alert {key} is assigned to {owner}"),
        CareChange::Assign(None) => format!("alert {key} is nobody's now"),
    }
}
