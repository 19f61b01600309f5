//! What can be typed. Nothing here reads a file or opens a store.

mod activity;
mod alert;
mod backup;
mod cause;
mod codes;
mod dead;
mod doctor;
mod global;
mod pipeline;
mod replay;
mod report;
mod result;
mod retry;
mod round;
#[cfg(test)]
mod routes;
mod run;
mod serve;
mod store;
mod token;
mod work;

use std::path::PathBuf;

use self::activity::ACTIVITY_EXAMPLES;
pub use self::activity::ActivityArgs;
pub use self::alert::{
    AlertAckArgs, AlertAssignArgs, AlertCheckArgs, AlertCommand, AlertKeys, AlertListArgs, AlertSnoozeArgs,
    AlertTestArgs,
};
pub use self::backup::{BackupArgs, RestoreArgs};
pub use self::cause::{CauseCommand, CauseListArgs, CauseShowArgs, ExplainArgs};
pub use self::codes::CodesArgs;
pub use self::dead::{DeadCommand, DeadFilterArgs, DeadListArgs, DeadShowArgs, DiscardArgs, ExportArgs, ImportArgs};
pub use self::doctor::DoctorArgs;
pub use self::global::{Global, Known, LogFormat};
pub use self::pipeline::{PauseArgs, PipelineCommand, PipelineShowArgs};
pub use self::replay::{
    DriveArgs, PlanArgs, ReplayCommand, ReplayShowArgs, ReplayWorkArgs, ResumeArgs, SelectArgs, StartArgs, TryArgs,
};
pub use self::report::{ReportArgs, TopArgs, TopBy};
pub use self::result::{ResultCommand, ResultExportArgs};
pub use self::retry::RetryArgs;
pub use self::round::{RoundCommand, RoundListArgs};
pub use self::run::{PushArgs, RunArgs, TaskArgs};
use self::serve::SERVE_EXAMPLES;
pub use self::serve::ServeArgs;
pub use self::store::{MigrateArgs, StoreCommand, StoreCopyArgs};
pub use self::token::{TokenCommand, TokenCreateArgs};
pub use self::work::WorkArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use redrive::config::Overrides;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobRef, PipelineName};
use redrive_core::state::JobState;

use crate::commands::breaker::BreakerCommand;

use crate::output::words;

/// A dead-letter queue that people operate: runs tasks, retries what is worth retrying, keeps what cannot be done.
#[derive(Debug, Parser)]
#[command(name = "redrive", version, max_term_width = 110, after_help = EXAMPLES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  redrive run tasks.jsonl -- python3 scrape.py    run every task, resume where it was
  redrive status                                  the ledger of every pipeline
  redrive dead list                               what died, why, how often tried
  redrive dead show 1234                          the original input and every attempt
  redrive retry 1234                              that one, now; --edit changes its input first
  redrive cause list                              what fails, by cause
  redrive replay try --cause CAUSE                would it work now? nothing happens
  redrive replay start --cause CAUSE              bring them back, in growing steps
  redrive audit                                   recount everything

Exit codes:
  0 all went well    1 something failed          2 wrong command line or configuration
  3 a task is dead, or an alert fires            4 a line was refused
  5 the audit found something
  6 a replay paused itself                       7 waited in vain for a target or a worker
  130 interrupted";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// See the whole story on this machine in a minute, without network or configuration
    Demo(DemoArgs),
    /// Run every task of a file until all are done or dead
    Run(RunArgs),
    /// Enqueue the tasks of a file, for workers to work on
    Push(PushArgs),
    /// Work on pipelines without end
    Work(WorkArgs),
    /// Answer programs in any language over HTTP, and look after the store
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Show the ledger of every pipeline
    Status(StatusArgs),
    /// Look at dead letters, give them up, carry them between stores
    #[command(subcommand)]
    Dead(DeadCommand),
    /// See what fails and why: dead letters grouped by cause
    #[command(subcommand)]
    Cause(CauseCommand),
    /// Try dead letters again: one, a few, or those of a cause
    Retry(RetryArgs),
    /// Bring dead letters back after a fix
    #[command(subcommand)]
    Replay(ReplayCommand),
    /// See what fails, where, when, since when; as a page with charts, too
    Report(ReportArgs),
    /// Take out the results that the store keeps
    #[command(subcommand)]
    Result(ResultCommand),
    /// Look at rounds: repetitions of the same tasks
    #[command(subcommand)]
    Round(RoundCommand),
    /// Be told when something goes wrong: rates, causes, targets, queues, the disk
    #[command(subcommand)]
    Alert(AlertCommand),
    /// Look at tasks in any state, cancel them
    #[command(subcommand)]
    Job(JobCommand),
    /// Look at the raw responses that were kept
    #[command(subcommand)]
    Payload(PayloadCommand),
    /// See what people did: who, when, to what, why
    #[command(after_help = ACTIVITY_EXAMPLES)]
    Activity(ActivityArgs),
    /// See which targets are waited for; close, hold and probe them
    #[command(subcommand)]
    Breaker(BreakerCommand),
    /// See where pipelines stand and what they are; pause and resume them
    #[command(subcommand)]
    Pipeline(PipelineCommand),
    /// Say who may ask a server for what
    #[command(subcommand)]
    Token(TokenCommand),
    /// Copy everything to another store; bring a store to the version of this redrive
    #[command(subcommand)]
    Store(StoreCommand),
    /// Recount everything and prove that nothing is missing
    Audit(JsonArgs),
    /// Check the configuration, the store, the disk and the vault; give unused space back
    Doctor(DoctorArgs),
    /// Write the store and its payloads to one file, while work goes on
    Backup(BackupArgs),
    /// Make a store of what `redrive backup` wrote
    Restore(RestoreArgs),
    /// Print the built-in tables: what codes of providers, HTTP statuses and names of errors mean
    Codes(CodesArgs),
    /// Write a commented redrive.toml
    Init(InitArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  redrive completions bash > /etc/bash_completion.d/redrive")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print what there is, for completion scripts
    #[command(hide = true)]
    Complete {
        /// Of what
        known: Known,
    },
    /// Run the one task that a worker hands over; redrive starts this itself
    #[command(hide = true)]
    IsolatedJob,
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Only serve the demo's site, to try things out against it
    #[arg(long, conflicts_with = "dashboard")]
    pub serve: bool,
    /// End on the dashboard: the rule is left for you to correct, and the server stays up until Ctrl-C
    #[arg(long)]
    pub dashboard: bool,
}

#[derive(Debug, Default, Args)]
pub struct HandlerArgs {
    /// The pipeline; `work` takes several [default: those of redrive.toml; with a command of its own, "default"]
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Vec<PipelineName>,
    /// Tasks to run at once [default: 16 for http and submit-poll, the number of cores for commands]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrency: Option<u16>,
    /// Attempts before a task dies [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempts: Option<u32>,
    /// The wait before the second attempt, doubled for each further one [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = redrive::config::units::duration)]
    pub backoff: Option<std::time::Duration>,
    /// How long one attempt may take [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = redrive::config::units::positive)]
    pub timeout: Option<std::time::Duration>,
    /// The most memory a command and its children may use [default: half of the machine's; 1GiB for a fetch that runs alone]
    #[arg(long, value_name = "SIZE", value_parser = redrive::config::units::size)]
    pub memory: Option<u64>,
    /// Keep the command running: one JSON line in, one out, for task after task
    #[arg(long)]
    pub persistent: bool,
    /// The command that does a task
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<std::ffi::OsString>,
}

impl HandlerArgs {
    /// What is said in place of the configuration.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            concurrency: self.concurrency.map(usize::from),
            attempts: self.attempts,
            backoff: self.backoff,
            timeout: self.timeout,
            memory_bytes_max: self.memory,
            persistent: self.persistent,
            pure: false,
            require_result: false,
            command: self.command.clone(),
            folder: None,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  redrive status\n  redrive status --watch             until you have seen enough: Ctrl-C"
)]
pub struct StatusArgs {
    /// Show it again whenever something changed, until interrupted
    #[arg(long)]
    pub watch: bool,
    /// Print JSON; with --watch, a line for each change
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Write over a redrive.toml that is there
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Subcommand)]
pub enum PayloadCommand {
    /// List the payloads of the vault
    List(PageArgs),
    /// Print the exact bytes of a payload
    #[command(
        after_help = "Examples:\n  redrive payload show ID > page.html       ID of a dead letter, or of a payload\n  redrive payload show ID --meta            status, headers, size"
    )]
    Show(PayloadShowArgs),
    /// Write a payload to a temporary file and say where
    Open {
        /// A task's number or id, or a payload's hash or the beginning of one
        id: String,
    },
    /// Read payloads back and check that they are what was kept
    Verify {
        /// Which; by default all
        ids: Vec<String>,
    },
    /// Remove payloads that nothing refers to any more
    Gc(PayloadGcArgs),
}

#[derive(Debug, Args)]
pub struct PayloadGcArgs {
    /// Spare what was wanted in this time
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = redrive::config::units::duration)]
    pub grace: std::time::Duration,
    /// This is the only store that is left of those it was copied from: collect what it inherited, too
    #[arg(long)]
    pub adopt: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PayloadShowArgs {
    /// A task's number or id, or a payload's hash or the beginning of one
    pub id: String,
    /// Print what came with it instead: status, headers, address, size
    #[arg(long, conflicts_with = "out")]
    pub meta: bool,
    /// Write it to a file; `-` writes to a terminal whatever it would make of it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// List tasks, newest first
    #[command(after_help = "Example:\n  redrive job list --state queued --pipeline catalog")]
    List(JobListArgs),
    /// Show a task and its failures
    Show(ShowArgs),
    /// Discard tasks that are queued or running, with a record
    #[command(after_help = "Example:\n  redrive job cancel ID --why 'wrong file'")]
    Cancel(CancelArgs),
}

/// Reads a reason; completion scripts know them all.
fn reason() -> impl TypedValueParser<Value = Reason> {
    PossibleValuesParser::new(Reason::ALL.iter().map(|reason| reason.as_str())).try_map(|name| name.parse::<Reason>())
}

#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only of this pipeline
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Only those that failed for this reason
    #[arg(long, value_parser = reason(), hide_possible_values = true)]
    pub reason: Option<Reason>,
    /// Only those that failed with this code
    #[arg(long)]
    pub code: Option<String>,
    /// Only of this target
    #[arg(long)]
    pub target: Option<String>,
    /// Only from this time on: 2h (ago), 2026-11-15 or 2026-11-15T14:02:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only those with this text in key, target, message or input
    #[arg(long)]
    pub text: Option<String>,
}

#[derive(Debug, Args)]
pub struct PageArgs {
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Go on where the last list ended
    #[arg(long)]
    pub cursor: Option<String>,
    /// All of them
    #[arg(long)]
    pub all: bool,
    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// Reads a state, and shows which there are.
fn state() -> impl TypedValueParser<Value = JobState> {
    let names = JobState::ALL.map(|state| match words::state(state) {
        word if word == state.as_str() => PossibleValue::new(word),
        word => PossibleValue::new(word).alias(state.as_str()),
    });
    PossibleValuesParser::new(names).try_map(|name| words::read_state(&name).ok_or("no such state"))
}

#[derive(Debug, Args)]
pub struct JobListArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Only in this state; may be given more than once
    #[arg(long, value_parser = state())]
    pub state: Vec<JobState>,
    #[command(flatten)]
    pub page: PageArgs,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Its number, its id, or the end of its id
    pub id: JobRef,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Which: numbers, ids, or ends of ids
    #[arg(required = true)]
    pub ids: Vec<JobRef>,
    /// Why, for the record
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: String,
}
