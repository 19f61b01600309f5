//! `redrive run` and `redrive push`, and the tasks that both take.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use redrive::config::Overrides;
use redrive::tasks::TaskFormat;
use redrive_core::ids::{PipelineName, RoundName};

use super::HandlerArgs;

const RUN_EXAMPLES: &str = "\
The command gets each task as JSON on its standard input and prints the result.
Exit 0 is success, 75 asks for a retry, 64, 65 and 78 are fatal, anything else
is retried. Running the same command again resumes: nothing is enqueued twice,
nothing done is done again. A file that has grown is run from where it has.

Examples:
  redrive run tasks.jsonl -- python3 scrape.py
  redrive run urls.txt -j 16 --out results.jsonl -- node fetch.js
  redrive run products.jsonl --pipeline catalog   the handler of redrive.toml
  redrive run products.csv.gz --key sku --dry-run   what would be done?
  redrive run urls.txt --round \"$(date +%F)\" -- ./fetch   all, once a day
  tail -f urls.txt | redrive run - -- ./fetch   tasks as they come";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    #[command(flatten)]
    pub tasks: TaskArgs,
    /// Append results to a file instead of printing them
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write only what came of each task, without the task
    #[arg(long)]
    pub bare: bool,
    /// A task that succeeds without a result has failed
    #[arg(long)]
    pub require_result: bool,
    /// Also replay what died in earlier runs
    #[arg(long, conflicts_with_all = ["dry_run", "again"])]
    pub retry_dead: bool,
    /// End when nothing was settled for so long: what waits for a target that stays away is a dead letter then; 0 waits for nothing, not even retries
    #[arg(long, value_name = "TIME|forever", default_value = "10m", value_parser = redrive::config::units::wait)]
    pub max_wait: redrive::config::units::Wait,
    /// Exit with 3 only if more than this share of what ended in this run died, such as 5%
    #[arg(long, value_name = "SHARE", value_parser = redrive::config::units::share)]
    pub fail_over: Option<f64>,
    /// Print one JSON document at the end; results go to --out
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub handler: HandlerArgs,
}

impl RunArgs {
    /// What is said in place of the configuration.
    pub fn overrides(&self) -> Overrides {
        Overrides { require_result: self.require_result, ..self.handler.overrides() }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  redrive push tasks.jsonl\n  redrive push urls.txt --pipeline catalog")]
pub struct PushArgs {
    #[command(flatten)]
    pub tasks: TaskArgs,
    /// The pipeline the tasks are for
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// The trace that the tasks are part of, as the W3C's Trace Context writes it: 00-TRACE-PARENT-FLAGS. Commands that work
    /// on them find it as TRACEPARENT
    #[arg(long, value_name = "TRACE", value_parser = traceparent)]
    pub traceparent: Option<String>,
}

fn traceparent(text: &str) -> Result<String, String> {
    match redrive_core::jobs::is_traceparent(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("expected a traceparent, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned())
        }
    }
}

#[derive(Debug, Args)]
pub struct TaskArgs {
    /// Tasks: JSON Lines, plain lines (each a URL), CSV or TSV with a header, a JSON array; also compressed with gzip or
    /// zstd; - for standard input, which is worked on as it comes
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How the file is to be read
    #[arg(long, value_enum, default_value = "auto")]
    pub format: Format,
    /// Refuse the whole file if one of its lines is broken; standard input is read to its end first
    #[arg(long)]
    pub strict: bool,
    /// The field that tasks are known by; may be given more than once [default: a task's own `key`, or else its content]
    #[arg(long, value_name = "FIELD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub key: Vec<String>,
    /// The round that the tasks belong to: each round runs every task once
    #[arg(long, value_name = "NAME")]
    pub round: Option<RoundName>,
    /// Begin a round, so that every task runs again
    #[arg(long, conflicts_with = "round")]
    pub again: bool,
    /// Take at most so many new tasks; the rest stays in the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Only say what would be enqueued and what is known
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask: tasks that cannot be told from old ones are new
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// By the file's name, or else by its first character
    Auto,
    /// A JSON object per line
    Jsonl,
    /// A URL, or any text, per line; # begins a comment
    Lines,
    /// Comma separated values under a header; values stay text
    Csv,
    /// Tab separated values under a header
    Tsv,
    /// One JSON array of objects
    Json,
}

impl Format {
    /// As the engine takes it.
    pub const fn of_tasks(self) -> TaskFormat {
        match self {
            Self::Auto => TaskFormat::Auto,
            Self::Jsonl => TaskFormat::JsonLines,
            Self::Lines => TaskFormat::Lines,
            Self::Csv => TaskFormat::Csv,
            Self::Tsv => TaskFormat::Tsv,
            Self::Json => TaskFormat::Json,
        }
    }
}
