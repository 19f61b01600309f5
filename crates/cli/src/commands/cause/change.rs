//! The verbs that change a cause: owner, notes, mute, resolve, merge, split.

use anyhow::Result;
use redrive::config::units;
use redrive_core::causes::{CauseChange, CauseState, Likeness, Mute, SplitBy};

use super::super::filter::actor;
use crate::args::CauseCommand;
use crate::exit::{Exit, usage};
use crate::output::foreign::cut;
use crate::output::print::{out, say};
use redrive::config::Setting;

pub async fn run(setting: &Setting, command: CauseCommand) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let now = redrive.now();
    let (id, change) = match command {
        CauseCommand::Assign { id, owner } => (id, CauseChange::Assign(owner.filter(|owner| !owner.trim().is_empty()))),
        CauseCommand::Note { id, text } => (id, CauseChange::Note(text)),
        CauseCommand::Mute(args) => {
            let until = args.until.map(|text| units::future(&text, now)).transpose().map_err(usage)?;
            if until.is_some_and(|until| until <= now) {
                return Err(usage("--until names a time that is over"));
            }
            (args.id, CauseChange::Mute(Mute { until, per_hour: args.per_hour }))
        }
        CauseCommand::Unmute { id } => (id, CauseChange::Unmute),
        CauseCommand::Resolve { id, why } => (id, CauseChange::Resolve(why)),
        CauseCommand::Reopen { id } => (id, CauseChange::Reopen),
        CauseCommand::Merge { from, into } => (from, CauseChange::MergeInto(into)),
        CauseCommand::Split(args) => {
            let by = match (args.by.key, args.by.target, args.by.text) {
                (Some(key), _, _) => SplitBy::Key(key),
                (_, Some(target), _) => SplitBy::Like(Likeness::Target(target)),
                (_, _, Some(text)) if !text.is_empty() => SplitBy::Like(Likeness::Text(text)),
                _ => return Err(usage("say what to split off: --key, --target or --text")),
            };
            (args.id, CauseChange::Split(by))
        }
        CauseCommand::List(_) | CauseCommand::Show(_) | CauseCommand::Explain(_) => {
            unreachable!("they change nothing and are handled apart")
        }
    };
    let muting = matches!(change, CauseChange::Mute(_));
    let id = redrive.change_cause(&id, &change, &actor()).await?;
    let cause = redrive.store().get_cause(id, now).await?.cause;
    out!("{} {}: {} dead  {}", cause.id, cause.state, cause.dead, cut(&cause.title, 80))?;
    if muting && cause.state != CauseState::Muted {
        say!("it kills that many jobs an hour already: it is not muted until it kills fewer");
    }
    Ok(Exit::Ok)
}
