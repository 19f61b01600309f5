//! What can be typed to try dead letters again.

use clap::Args;
use redrive_core::ids::JobRef;

use super::DeadFilterArgs;
use super::replay::{DriveArgs, ModeArgs, edit};

/// Which letters, and how.
#[derive(Debug, Args)]
#[command(
    after_help = "A handful of letters goes at once, and what becomes of each is said as it comes; more than twenty go in growing steps, as\nwith `redrive replay start`.\n\nExamples:\n  redrive retry 1234\n  redrive retry 1234 1240 --set url=https://shop.example/new\n  redrive retry 1234 --edit                 change its input in $EDITOR first\n  redrive retry --cause 3f9a1c2e"
)]
pub struct RetryArgs {
    /// The dead letters, by number, id or the end of an id; or filters
    #[arg(value_name = "ID")]
    pub ids: Vec<JobRef>,
    #[command(flatten)]
    pub filter: DeadFilterArgs,
    /// Change a field of the input first: FIELD=VALUE (VALUE is JSON, or else text); /a/b for one inside another
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = edit)]
    pub edits: Vec<(String, serde_json::Value)>,
    /// Change the input of one letter in $VISUAL or $EDITOR first
    #[arg(long, conflicts_with = "edits")]
    pub edit: bool,
    /// Also those that failed permanently
    #[arg(long)]
    pub force: bool,
    /// Why, for the record [default: retried by hand]
    #[arg(long, requires = "force", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: Option<String>,
    #[command(flatten)]
    pub mode: ModeArgs,
    #[command(flatten)]
    pub drive: DriveArgs,
}
