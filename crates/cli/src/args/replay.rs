//! What can be typed about replays.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use redrive::config::units;
use redrive::replays::ReplayRef;
use redrive_core::ids::JobRef;
use redrive_core::replays::{LetterState, ReplayMode};

use super::{DeadFilterArgs, PageArgs};

#[derive(Debug, Subcommand)]
pub enum ReplayCommand {
    /// Say what would be replayed, what not and why; nothing happens
    #[command(
        after_help = "Examples:\n  redrive replay plan --cause 3f9a1c2e\n  redrive replay plan --reason timeout --since 2h"
    )]
    Plan(PlanArgs),
    /// Run the handler over the saved payloads and settle nothing: how many would recover
    #[command(after_help = "Examples:\n  redrive replay try --cause 3f9a1c2e\n  redrive replay try --show --json")]
    Try(TryArgs),
    /// Send dead letters through their pipeline again, in growing steps, and stop if they fail again
    #[command(
        after_help = "Examples:\n  redrive replay start --cause 3f9a1c2e --name 'price selector fixed'\n  redrive replay start --reason timeout --rate 20/s --ramp 1,10,100\n  redrive replay start ID --set url=https://shop.example/new\n  redrive replay start --pipeline default -- python3 scrape.py"
    )]
    Start(StartArgs),
    /// List replays, newest first
    List(PageArgs),
    /// Show a replay, and what became of its letters
    Show(ReplayShowArgs),
    /// Follow a replay until it ends
    Watch {
        /// The replay: its id, the end of it, or `last`
        id: ReplayRef,
    },
    /// Send nothing more until it is resumed
    Pause {
        /// The replay: its id, the end of it, or `last`
        id: ReplayRef,
    },
    /// Go on with a replay that is paused, or whose process was killed
    Resume(ResumeArgs),
    /// Go faster or slower from now on
    #[command(
        after_help = "Examples:\n  redrive replay rate last 5/s\n  redrive replay rate last none     as fast as they are worked on"
    )]
    Rate {
        /// The replay: its id, the end of it, or `last`
        id: ReplayRef,
        /// Letters in a time, such as 5/s, 100/m or 500/h; or none
        rate: String,
    },
    /// Send nothing more; what nobody has begun is dead again as it was, the rest comes to its end
    Cancel {
        /// The replay: its id, the end of it, or `last`
        id: ReplayRef,
    },
}

/// Which letters, and from what.
#[derive(Debug, Args)]
pub struct SelectArgs {
    /// The dead letters, by number, id or the end of an id; or filters
    #[arg(value_name = "ID")]
    pub ids: Vec<JobRef>,
    #[command(flatten)]
    pub filter: DeadFilterArgs,
    /// Also those that failed permanently; needs --why
    #[arg(long, requires = "why")]
    pub force: bool,
    /// Why, for the record
    #[arg(long, requires = "force", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: Option<String>,
}

#[derive(Debug, Args)]
pub struct ModeArgs {
    /// Work from the saved payloads: no network
    #[arg(long, conflicts_with = "refetch")]
    pub saved: bool,
    /// Do everything anew: also submit, and pay for, tasks again that were left at a provider
    #[arg(long, visible_alias = "resubmit")]
    pub refetch: bool,
}

impl ModeArgs {
    /// What is wanted, if anything is; else each letter is worked on from what suits it.
    pub const fn wanted(&self) -> Option<ReplayMode> {
        match self {
            Self { saved: true, .. } => Some(ReplayMode::Saved),
            Self { refetch: true, .. } => Some(ReplayMode::Refetch),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub mode: ModeArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How the work is done.
#[derive(Debug, Default, Args)]
pub struct ReplayWorkArgs {
    /// Letters to work on at once [default: as the pipeline says]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: Option<u16>,
    /// The command works from a saved payload (REDRIVE_SAVED) alone: no network, no other effect
    #[arg(long, requires = "command")]
    pub pure: bool,
    /// Run the command that the pipeline was last run with, also if it was not you who ran it
    #[arg(long, conflicts_with = "command")]
    pub trust_stored: bool,
    /// The command that does a task, where redrive.toml has none [default: the one that you ran the pipeline with]
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

/// Who does the work, and where results go.
#[derive(Debug, Args)]
pub struct DriveArgs {
    /// Leave the work to `redrive work`
    #[arg(long)]
    pub detach: bool,
    /// Append results to this file instead of where they went before
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub work: ReplayWorkArgs,
}

#[derive(Debug, Args)]
pub struct TryArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// Change a field of the input first: FIELD=VALUE; may be given more than once
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = edit)]
    pub edits: Vec<(String, serde_json::Value)>,
    /// Show what the newest try came to, of these letters or of any, instead of trying
    #[arg(long)]
    pub show: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub work: ReplayWorkArgs,
}

#[derive(Debug, Args)]
pub struct StartArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    /// What it is called [default: what it selects]
    #[arg(long)]
    pub name: Option<String>,
    #[command(flatten)]
    pub mode: ModeArgs,
    /// Only what the newest `replay try` of these letters recovered, from the saved payloads
    #[arg(long, conflicts_with = "refetch")]
    pub recoverable: bool,
    /// Letters per second, minute or hour: 20/s, 100/m
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub rate: Option<f64>,
    /// Letters per step; each step waits for the one before, then all that is left goes; none for no steps
    #[arg(long, value_name = "N,N,…", default_value = "1,5,20,100", value_parser = ramp)]
    pub ramp: Ramp,
    /// Pause when more than this share of a step fails again, and two letters at least since it began or was resumed
    #[arg(long, value_name = "SHARE", default_value = "25%", value_parser = units::share)]
    pub refail_max: f64,
    /// Change a field of the input first: FIELD=VALUE (VALUE is JSON, or else text); a.b or /a/b for one inside another
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = edit)]
    pub edits: Vec<(String, serde_json::Value)>,
    #[command(flatten)]
    pub drive: DriveArgs,
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The replay: its id, the end of it, or `last`
    pub id: ReplayRef,
    #[command(flatten)]
    pub drive: DriveArgs,
}

#[derive(Debug, Args)]
pub struct ReplayShowArgs {
    /// The replay: its id, the end of it, or `last`
    pub id: ReplayRef,
    /// List its letters, with what became of each
    #[arg(long)]
    pub letters: bool,
    /// Only letters of which this became
    #[arg(long, value_parser = letter_state(), requires = "letters")]
    pub state: Option<LetterState>,
    #[command(flatten)]
    pub page: PageArgs,
}

fn letter_state() -> impl TypedValueParser<Value = LetterState> {
    let names = ["pending", "running", "recovered", "failed", "gone", "cancelled"];
    PossibleValuesParser::new(names).try_map(|name| name.parse::<LetterState>())
}

/// The steps of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ramp(pub Vec<u32>);

fn ramp(text: &str) -> Result<Ramp, String> {
    if text == "none" {
        return Ok(Ramp(Vec::new()));
    }
    let wrong = || format!("{text:?} is not a ramp: expected one such as 1,5,20,100, or none");
    let steps: Vec<u32> = text.split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
    if steps.contains(&0) { Err(wrong()) } else { Ok(Ramp(steps)) }
}

pub(super) fn edit(text: &str) -> Result<(String, serde_json::Value), String> {
    let (field, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not FIELD=VALUE"))?;
    if field.is_empty() {
        return Err(format!("{text:?} names no field"));
    }
    Ok((field.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ramps_and_edits() {
        assert_eq!(ramp("1, 5,20"), Ok(Ramp(vec![1, 5, 20])));
        assert_eq!(ramp("none"), Ok(Ramp(Vec::new())));
        for bad in ["", "0", "1,0", "1;5", "-1"] {
            assert!(ramp(bad).is_err(), "{bad:?}");
        }
        assert_eq!(edit("n=5"), Ok(("n".into(), json!(5))));
        assert_eq!(edit("url=https://a/?b=c"), Ok(("url".into(), json!("https://a/?b=c"))));
        assert!(edit("url").is_err() && edit("=x").is_err());
    }
}
