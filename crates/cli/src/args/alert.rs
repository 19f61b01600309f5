//! What can be typed about alerts.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use redrive_core::alerts::AlertStanding;

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
        after_help = "Examples:\n  redrive alert list\n  redrive alert list --all             also what was over in the last week\n  redrive alert list --state snoozed   only what nobody is told of for now"
    )]
    List(AlertListArgs),
    /// Say that you have seen alerts; until they double or fire anew
    #[command(after_help = "Examples:\n  redrive alert ack rate/shop\n  redrive alert ack rate/shop --undo")]
    Ack(AlertAckArgs),
    /// Have nobody told that alerts fire, until a time; that they are over is told
    #[command(
        after_help = "Examples:\n  redrive alert snooze rate/shop --until 2h --why 'the shop moves'\n  redrive alert wake rate/shop"
    )]
    Snooze(AlertSnoozeArgs),
    /// Have people told of snoozed alerts again
    Wake(AlertKeys),
    /// Say who looks after alerts
    #[command(
        after_help = "Examples:\n  redrive alert assign rate/shop --to ada\n  redrive alert assign rate/shop      nobody"
    )]
    Assign(AlertAssignArgs),
}

#[derive(Debug, Args)]
pub struct AlertKeys {
    /// The alerts, as `redrive alert list` calls them
    #[arg(value_name = "ALERT", required = true)]
    pub keys: Vec<String>,
}

#[derive(Debug, Args)]
pub struct AlertAckArgs {
    #[command(flatten)]
    pub which: AlertKeys,
    /// Take it back
    #[arg(long)]
    pub undo: bool,
}

#[derive(Debug, Args)]
pub struct AlertSnoozeArgs {
    #[command(flatten)]
    pub which: AlertKeys,
    /// Until this time: 2h (from now), 2026-11-20 or 2026-11-20T08:00:00Z
    #[arg(long, value_name = "TIME")]
    pub until: String,
    /// Why, for who wonders
    #[arg(long)]
    pub why: Option<String>,
}

#[derive(Debug, Args)]
pub struct AlertAssignArgs {
    #[command(flatten)]
    pub which: AlertKeys,
    /// Who; nobody if left out
    #[arg(long, value_name = "OWNER")]
    pub to: Option<String>,
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

fn state() -> impl TypedValueParser<Value = AlertStanding> {
    PossibleValuesParser::new(AlertStanding::ALL.map(AlertStanding::as_str))
        .try_map(|name| name.parse::<AlertStanding>())
}

#[derive(Debug, Args)]
pub struct AlertListArgs {
    /// Also alerts that are over
    #[arg(long)]
    pub all: bool,
    /// Only those that fire and are not snoozed, that are snoozed, or that ended in the last week
    #[arg(long, value_parser = state(), conflicts_with = "all")]
    pub state: Option<AlertStanding>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
