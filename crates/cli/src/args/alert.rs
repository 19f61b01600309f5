//! What can be typed about alerts.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum AlertCommand {
    /// Judge everything now, tell the sinks of redrive.toml, and print what fires, one line each; exits with 3 if anything does
    #[command(after_help = CHECK_EXAMPLES)]
    Check(AlertCheckArgs),
    /// Send a test to the sinks of redrive.toml and say what came of it
    #[command(after_help = "Examples:\n  redrive alert test\n  redrive alert test team")]
    Test(AlertTestArgs),
    /// List what fires and how the sinks fare
    #[command(
        after_help = "Examples:\n  redrive alert list\n  redrive alert list --all      also what was over in the last week"
    )]
    List(AlertListArgs),
}

const CHECK_EXAMPLES: &str = "\
Nothing needs to run beside it: `redrive work` and `redrive run` judge the same rules, once a minute and at their end.

Examples:
  redrive alert check
  */5 * * * *  cd /srv/shop && redrive alert check     in a crontab: cron mails what fires
  redrive alert check --dry-run                        only look: nothing is kept and nobody is told";

#[derive(Debug, Args)]
pub struct AlertCheckArgs {
    /// Keep nothing and tell nobody
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct AlertTestArgs {
    /// The sinks; by default all
    #[arg(value_name = "SINK")]
    pub sinks: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct AlertListArgs {
    /// Also alerts that are over
    #[arg(long)]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
