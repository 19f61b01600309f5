//! What can be typed about breakers.

use clap::{Args, Subcommand};
use redrive_core::ids::PipelineName;

#[derive(Debug, Subcommand)]
pub enum BreakerCommand {
    /// List the targets that are waited for: since when, why, how many tasks, when one goes to see
    List(BreakerListArgs),
    /// Let the tasks of a target go on now
    #[command(after_help = "Example:\n  redrive breaker close shop.example        topped up: go on")]
    Close(BreakerArgs),
    /// Have the tasks of a target wait, whatever it does
    #[command(
        after_help = "Examples:\n  redrive breaker hold shop.example --until 2h --why 'they asked us to'\n  redrive breaker hold solver.example        until it is closed by hand\n\nWhen the time is over one task goes to see, as always when a breaker was open."
    )]
    Hold(HoldArgs),
    /// Let one task of a target go now, to see whether it is better
    Probe(BreakerArgs),
}

#[derive(Debug, Args)]
pub struct BreakerListArgs {
    /// Only of this pipeline
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BreakerArgs {
    /// The target, as `redrive breaker list` shows it
    pub target: String,
    /// Only of this pipeline [default: all that wait for the target]
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
}

#[derive(Debug, Args)]
pub struct HoldArgs {
    /// The target: the host of the tasks, or what their `target` says
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub target: String,
    /// Only of this pipeline [default: all pipelines there are]
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Until this time: 2h (from now), 2026-11-20 or 2026-11-20T08:00:00Z [default: until it is closed]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Why, for who wonders
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: Option<String>,
}
