//! What can be typed about causes.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use redrive_core::causes::{CauseId, CauseSort, CauseState};
use redrive_core::ids::PipelineName;

#[derive(Debug, Subcommand)]
pub enum CauseCommand {
    /// List causes by impact: how many letters, since when, where
    #[command(
        after_help = "Examples:\n  redrive cause list\n  redrive cause list --state new --state regressed --json"
    )]
    List(CauseListArgs),
    /// Show a cause: why its letters belong together, samples, trend, notes
    Show(CauseShowArgs),
    /// Say why failures belong where they do: a dead letter's, or any of your own on standard input
    #[command(
        after_help = "Reads JSON Lines ({\"message\": …} or whole failures; a plain line is a message) and prints, in the same order, one\nJSON line each with key, template and what was masked.\n\nExamples:\n  redrive cause explain ID\n  redrive cause explain --stdin < errors.log | jq -r .template | sort | uniq -c | sort -rn"
    )]
    Explain(ExplainArgs),
    /// Say who looks after causes
    #[command(
        after_help = "Examples:\n  redrive cause assign 3f9a1c2e ada\n  redrive cause assign 3f9a1c2e 77aa01bc --to ada     several at once\n  redrive cause assign 3f9a1c2e                       nobody"
    )]
    Assign(AssignArgs),
    /// Write something down about a cause
    Note {
        /// The cause
        id: CauseId,
        /// What
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        text: String,
    },
    /// Hear no more of a cause, until a time or a rate
    #[command(
        after_help = "Examples:\n  redrive cause mute 3f9a1c2e --until 7d\n  redrive cause mute 3f9a1c2e --per-hour 20      until it kills 20 tasks in an hour"
    )]
    Mute(MuteArgs),
    /// Hear of a cause again
    Unmute {
        /// The causes
        #[arg(value_name = "ID", required = true)]
        ids: Vec<CauseId>,
    },
    /// Say that a cause is over; if it comes back it is regressed
    Resolve {
        /// The causes
        #[arg(value_name = "ID", required = true)]
        ids: Vec<CauseId>,
        /// Why
        #[arg(long)]
        why: Option<String>,
    },
    /// Say that a cause is not over
    Reopen {
        /// The causes
        #[arg(value_name = "ID", required = true)]
        ids: Vec<CauseId>,
    },
    /// Say that a cause is the same as another, now and in the future
    #[command(
        after_help = "Example:\n  redrive cause merge 77aa01bc 3f9a1c2e     the first becomes part of the second"
    )]
    Merge {
        /// The cause that goes
        from: CauseId,
        /// The cause it becomes part of
        into: CauseId,
    },
    /// Say that part of a cause is something else, now and in the future
    #[command(
        after_help = "Examples:\n  redrive cause split 3f9a1c2e --key 1-77aa01bc…         take a merge back\n  redrive cause split 3f9a1c2e --target shop.example     that host's failures are another matter"
    )]
    Split(SplitArgs),
}

fn state() -> impl TypedValueParser<Value = CauseState> {
    PossibleValuesParser::new(CauseState::ALL.map(CauseState::as_str)).try_map(|name| name.parse::<CauseState>())
}

fn sort() -> impl TypedValueParser<Value = CauseSort> {
    PossibleValuesParser::new(CauseSort::ALL.map(CauseSort::as_str)).try_map(|name| name.parse::<CauseSort>())
}

#[derive(Debug, Args)]
pub struct CauseListArgs {
    /// Only of this pipeline
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Only in this state; may be given more than once
    #[arg(long, value_parser = state())]
    pub state: Vec<CauseState>,
    /// Only of this owner
    #[arg(long)]
    pub owner: Option<String>,
    /// Also causes that no letter is dead of any more
    #[arg(long)]
    pub all: bool,
    /// Which come first: those with the most dead letters, those of which somebody died last, or those that were first seen last
    #[arg(long, default_value_t, value_parser = sort())]
    pub sort: CauseSort,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CauseShowArgs {
    /// The cause, or the beginning of its id
    pub id: CauseId,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A dead letter: its number, its id, or the end of its id
    #[arg(required_unless_present = "stdin", conflicts_with = "stdin")]
    pub id: Option<redrive_core::ids::JobRef>,
    /// Read failures from standard input
    #[arg(long)]
    pub stdin: bool,
}

#[derive(Debug, Args)]
pub struct AssignArgs {
    /// The cause, and who; without --to the last of two is who
    #[arg(value_name = "ID", required = true)]
    pub words: Vec<String>,
    /// Who; then all others are causes
    #[arg(long, value_name = "OWNER")]
    pub to: Option<String>,
}

impl AssignArgs {
    /// Which causes, and whose they are to be.
    pub fn read(self) -> Result<(Vec<CauseId>, Option<String>), String> {
        let (words, owner) = match (self.to, &self.words[..]) {
            (Some(owner), words) => (words, Some(owner)),
            (None, [id]) => (std::slice::from_ref(id), None),
            (None, [id, owner]) => (std::slice::from_ref(id), Some(owner.clone())),
            (None, _) => return Err("say who by --to: several causes are meant".to_owned()),
        };
        let ids = words.iter().map(|word| word.parse().map_err(|error| format!("{word}: {error}")));
        Ok((ids.collect::<Result<_, _>>()?, owner.filter(|owner| !owner.trim().is_empty())))
    }
}

#[derive(Debug, Args)]
pub struct MuteArgs {
    /// The causes
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<CauseId>,
    /// Until this time: 7d (from now), 2026-11-20 or 2026-11-20T08:00:00Z
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Until it kills so many tasks in an hour
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub per_hour: Option<u32>,
}

#[derive(Debug, Args)]
#[group(skip)]
pub struct SplitArgs {
    /// The cause
    pub id: CauseId,
    #[command(flatten)]
    pub by: SplitBy,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct SplitBy {
    /// One of its keys, as `redrive cause show` lists them
    #[arg(long)]
    pub key: Option<String>,
    /// The failures of this target
    #[arg(long)]
    pub target: Option<String>,
    /// The failures with this text in their message
    #[arg(long)]
    pub text: Option<String>,
}
