//! The verbs that change a cause: owner, notes, mute, resolve, merge, split.

use anyhow::Result;
use redrive::config::units;
use redrive_core::causes::{CauseChange, CauseId, CauseState, Likeness, Mute, SplitBy};
use redrive_core::time::Timestamp;

use super::super::filter::actor;
use crate::args::CauseCommand;
use crate::exit::{Exit, usage};
use crate::output::foreign::{cut, harmless};
use crate::output::print::{out, say};
use crate::setting::Setting;
use redrive::contract::CauseView;

pub async fn run(setting: &Setting, command: CauseCommand) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let (ids, change) = read(command, redrive.now())?;
    // Nothing is done to any if one of them is none.
    let mut causes = Vec::new();
    for id in ids {
        causes.push(redrive.get_cause(id).await?.cause);
    }
    for before in causes {
        let about = redrive.change_cause(&before.id, &change, &actor()).await?;
        let cause = redrive.get_cause(about).await?.cause;
        out!("{}", harmless(&told(&change, &before, &cause)))?;
        out!("  {}: {} dead  {}", cause.state, cause.dead, cut(&cause.title, 80))?;
        let muting = matches!(change, CauseChange::Mute(_));
        if muting && cause.state != CauseState::Muted {
            say!("it kills that many tasks an hour already: it is not muted until it kills fewer");
        }
    }
    Ok(Exit::Ok)
}

/// Which causes, and what is to be done to each.
fn read(command: CauseCommand, now: Timestamp) -> Result<(Vec<CauseId>, CauseChange)> {
    Ok(match command {
        CauseCommand::Assign(args) => {
            let (ids, owner) = args.read().map_err(usage)?;
            (ids, CauseChange::Assign(owner))
        }
        CauseCommand::Note { id, text } => (vec![id], CauseChange::Note(text)),
        CauseCommand::Mute(args) => {
            let until = args.until.map(|text| units::future(&text, now)).transpose().map_err(usage)?;
            (args.ids, CauseChange::Mute(Mute { until, per_hour: args.per_hour }))
        }
        CauseCommand::Unmute { ids } => (ids, CauseChange::Unmute),
        CauseCommand::Resolve { ids, why } => (ids, CauseChange::Resolve(why)),
        CauseCommand::Reopen { ids } => (ids, CauseChange::Reopen),
        CauseCommand::Merge { from, into } => (vec![from], CauseChange::MergeInto(into)),
        CauseCommand::Split(args) => {
            let by = match (args.by.key, args.by.target, args.by.text) {
                (Some(key), _, _) => SplitBy::Key(key),
                (_, Some(target), _) => SplitBy::Like(Likeness::Target(target)),
                (_, _, Some(text)) if !text.is_empty() => SplitBy::Like(Likeness::Text(text)),
                _ => return Err(usage("say what to split off: --key, --target or --text")),
            };
            (vec![args.id], CauseChange::Split(by))
        }
        CauseCommand::List(_) | CauseCommand::Show(_) | CauseCommand::Explain(_) => {
            unreachable!("they change nothing and are handled apart")
        }
    })
}

/// What was done to a cause, in words.
fn told(change: &CauseChange, before: &CauseView, after: &CauseView) -> String {
    let id = &before.id;
    match (change, &before.owner) {
        (CauseChange::Assign(Some(owner)), Some(former)) if former != owner => {
            format!("cause {id} is assigned to {owner}, no longer to {former}")
        }
        (CauseChange::Assign(Some(owner)), _) => format!("cause {id} is assigned to {owner}"),
        (CauseChange::Assign(None), Some(former)) => format!("cause {id} is nobody's now; it was assigned to {former}"),
        (CauseChange::Assign(None), None) => format!("cause {id} was nobody's already"),
        (CauseChange::Note(_), _) => format!("noted of cause {id}"),
        (CauseChange::Mute(Mute { until, per_hour }), _) => {
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            let rate = per_hour.map(|n| format!(" until it kills {n} in an hour")).unwrap_or_default();
            format!("cause {id} is muted{until}{rate}")
        }
        (CauseChange::Unmute, _) => format!("cause {id} is no longer muted"),
        (CauseChange::Resolve(_), _) => format!("cause {id} is resolved; if it comes back it is regressed"),
        (CauseChange::Reopen, _) => format!("cause {id} is open again"),
        (CauseChange::MergeInto(_), _) => format!("cause {id} is part of cause {} now", after.id),
        (CauseChange::Split(_), _) => format!("split off cause {id}: cause {}", after.id),
    }
}
