//! What can be typed about dead letters.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use redrive_core::causes::CauseId;
use redrive_core::dead::foreign::Field;
use redrive_core::dead::{Gate, LetterSort};
use redrive_core::ids::{JobRef, PipelineName, RoundName};

use super::{FilterArgs, PageArgs, TopArgs};

#[derive(Debug, Subcommand)]
pub enum DeadCommand {
    /// List dead letters, those that died last first
    #[command(
        after_help = "Examples:\n  redrive dead list --reason timeout --since 2h\n  redrive dead list --sort oldest --limit 10\n  redrive dead list --text 'price' --json | jq .input.url"
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
    /// Take in dead letters: what another store exported, or the file of a script; known ones are passed over
    #[command(after_help = IMPORT_HELP)]
    Import(ImportArgs),
}

/// Which dead letters.
#[derive(Debug, Args)]
pub struct DeadFilterArgs {
    /// Only of this cause
    #[arg(long, value_name = "CAUSE")]
    pub cause: Option<CauseId>,
    /// Only of this round
    #[arg(long, value_name = "ROUND")]
    pub round: Option<RoundName>,
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
    /// Which come first, by when they died
    #[arg(long, default_value_t, value_parser = sort())]
    pub sort: LetterSort,
    #[command(flatten)]
    pub page: PageArgs,
}

fn sort() -> impl TypedValueParser<Value = LetterSort> {
    PossibleValuesParser::new(LetterSort::ALL.map(LetterSort::as_str)).try_map(|name| name.parse::<LetterSort>())
}

#[derive(Debug, Args)]
pub struct DiscardArgs {
    /// Which: numbers, ids, or ends of ids; or filters
    #[arg(value_name = "ID")]
    pub ids: Vec<JobRef>,
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
    /// Its number, its id, or the end of its id
    pub id: JobRef,
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
    /// What `dead export` wrote, or a JSON array or JSON Lines of another program; - for standard input
    pub file: PathBuf,
    /// The pipeline that letters of another program are for
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Where another program tells something: WHAT is message, time, attempts, code, status, stack, proxy, error_type, input,
    /// key or target; FIELD is a name, a.b for one inside another, or /a/b
    #[arg(long = "field", value_name = "WHAT=FIELD", value_parser = named, requires = "pipeline")]
    pub fields: Vec<(Field, String)>,
    /// Keep what looks secret in letters of another program that have no input of their own: their command needs it
    #[arg(long, requires = "pipeline")]
    pub keep_secrets: bool,
    /// Say what would come of it; nothing is taken in
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn named(text: &str) -> Result<(Field, String), String> {
    let (what, field) = text.split_once('=').ok_or_else(|| format!("{text:?} is not WHAT=FIELD"))?;
    if field.is_empty() {
        return Err(format!("{text:?} names no field"));
    }
    Ok((what.parse()?, field.to_owned()))
}

const IMPORT_HELP: &str = "\
A letter of another program is an object in which the failure is told under the usual names: error or message, attempts,
failed_at or timestamp (seconds, milliseconds or text), code, status, stack, proxy. Everything else is the input, unless
there is an `input`. The rules of the pipeline say why it died; letters are grouped as ever. Taking the same file in again
adds nothing.

Examples:
  redrive dead import letters.jsonl                            what `redrive dead export` wrote
  redrive dead import captcha-dlq.json -p solver --dry-run
  redrive dead import failed.jsonl -p shop --field message=result.why --field input=task";
