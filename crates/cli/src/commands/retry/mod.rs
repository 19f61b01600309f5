//! `redrive retry`: dead letters tried again without ceremony, and what becomes of each said as it comes.

mod edit;

use anyhow::Result;
use redrive_client::Desk;
use redrive_core::jobs::Input;

use super::replay::{Asked, start};
use crate::args::{RetryArgs, SelectArgs};
use crate::exit::{Exit, usage};
use crate::output::print::say;
use crate::output::problem::within;
use crate::setting::Setting;

/// What is written down of letters that failed permanently and are tried all the same.
const BY_HAND: &str = "retried by hand";

pub async fn run(setting: &Setting, args: RetryArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let edits = match args.edit {
        true => edited(setting, &redrive, &args).await?,
        false => Some(args.edits.into_iter().collect()),
    };
    let Some(edits) = edits else {
        say!("the input is as it was: nothing is retried");
        return Ok(Exit::Ok);
    };
    let why = args.force.then(|| args.why.unwrap_or_else(|| BY_HAND.to_owned()));
    let asked = Asked {
        select: SelectArgs { ids: args.ids, filter: args.filter, force: args.force, why },
        name: None,
        mode: args.mode.wanted(),
        recoverable: false,
        pacing: None,
        edits,
        by_name: true,
        drive: args.drive,
    };
    start(setting, &redrive, asked).await
}

/// The one letter's input as a person changed it; nothing if it was left as it was.
async fn edited(setting: &Setting, redrive: &Desk, args: &RetryArgs) -> Result<Option<Input>> {
    let [named] = args.ids.as_slice() else { return Err(usage("--edit changes the input of one letter: name one")) };
    let id = redrive.find_job(named).await.map_err(|error| within(setting, error))?;
    let letter = redrive.dead_letter(id).await.map_err(|error| within(setting, error))?;
    let changed = tokio::task::block_in_place(|| edit::edit(&letter.input))?;
    // The empty name is the whole input: fields may have been taken out, too.
    Ok(changed.map(|input| [(String::new(), input.into())].into_iter().collect()))
}
