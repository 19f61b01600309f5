//! What can be typed about dead letters.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use redrive_core::causes::CauseId;
use redrive_core::dead::Gate;
use redrive_core::ids::JobId;

use super::{FilterArgs, PageArgs, TopArgs};

#[derive(Debug, Subcommand)]
pub enum DeadCommand {
    /// List dead letters, newest first
    #[command(
        after_help = "Examples:\n  redrive dead list --reason timeout --since 2h\n  redrive dead list --text 'price' --json | jq .input.url"
    )]
    List(DeadListArgs),
    /// Show a dead letter: its input and every attempt
    #[command(
        after_help = "Examples:\n  redrive dead show ID\n  redrive dead show ID --curl            the request as a command line, secrets masked\n  redrive dead show ID --har > log.har   every attempt, for the tools that show network logs"
    )]
    Show(DeadShowArgs),
    /// Count dead letters by what they have in common, with the denominator where there is one
    #[command(
        after_help = "Examples:\n  redrive dead top --by reason\n  redrive dead top --by input.sitekey --csv\n  redrive dead top --by proxy --reason network --since 24h"
    )]
    Top(TopArgs),
    /// Give dead letters up, with a record of who, when and why
    #[command(
        after_help = "Examples:\n  redrive dead discard ID --why 'page is gone'\n  redrive dead discard --reason not_found --why 'pages are gone' --yes"
    )]
    Discard(DiscardArgs),
    /// Write dead letters, with all their failures, as JSON Lines, or with their payloads as a web archive
    #[command(
        after_help = "Examples:\n  redrive dead export --since 7d letters.jsonl\n  redrive dead export --cause 3f9a1c2e --warc pages.warc.gz"
    )]
    Export(ExportArgs),
    /// Take in dead letters that another store exported; known ones are passed over
    #[command(after_help = "Example:\n  redrive dead import letters.jsonl")]
    Import(ImportArgs),
}

/// Which dead letters.
#[derive(Debug, Args)]
pub struct DeadFilterArgs {
    /// Only of this cause
    #[arg(long, value_name = "CAUSE")]
    pub cause: Option<CauseId>,
    /// Only through this proxy, by its label
    #[arg(long, value_name = "LABEL")]
    pub proxy: Option<String>,
    /// Only with this gate: auto, review or never
    #[arg(long)]
    pub gate: Option<Gate>,
    #[command(flatten)]
    pub common: FilterArgs,
}

#[derive(Debug, Args)]
pub struct DeadListArgs {
    #[command(flatten)]
    pub filter: DeadFilterArgs,
    #[command(flatten)]
    pub page: PageArgs,
}

#[derive(Debug, Args)]
pub struct DiscardArgs {
    /// The ids; or filters
    pub ids: Vec<JobId>,
    #[command(flatten)]
    pub filter: DeadFilterArgs,
    /// Why, for the record
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: String,
    /// Discard all that the filters find, without showing first how many there are
    #[arg(long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Where to; - for standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    #[command(flatten)]
    pub filter: DeadFilterArgs,
    /// Write a web archive (WARC) with the payloads
    #[arg(long)]
    pub warc: bool,
}

#[derive(Debug, Args)]
pub struct DeadShowArgs {
    /// The id
    pub id: JobId,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print the request as a command line for curl, with secrets masked
    #[arg(long, conflicts_with = "json")]
    pub curl: bool,
    /// Print every attempt as a network log (HAR)
    #[arg(long, conflicts_with_all = ["json", "curl"])]
    pub har: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// What `dead export` wrote; - for standard input
    pub file: PathBuf,
}
