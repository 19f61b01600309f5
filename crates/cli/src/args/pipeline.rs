//! What can be typed about pipelines.

use clap::{Args, Subcommand};
use redrive_core::ids::PipelineName;

use super::JsonArgs;

#[derive(Debug, Subcommand)]
pub enum PipelineCommand {
    /// List the pipelines of the store and of redrive.toml, and where they stand
    List(JsonArgs),
    /// Show what a pipeline effectively is, each value with where it came from
    Show(PipelineShowArgs),
    /// Begin nothing more of a pipeline, with any worker, until it is resumed; what runs comes to its end
    #[command(
        after_help = "Examples:\n  redrive pipeline pause catalog --why 'the shop moves'\n  redrive pipeline pause catalog --until 2h       goes on by itself"
    )]
    Pause(PauseArgs),
    /// Let a paused pipeline go on
    Resume {
        /// The pipeline
        name: PipelineName,
    },
    /// Forget a pipeline that has nothing: no tasks that wait or run, no letters, no kept results, no pause, no target on hold
    #[command(
        after_help = "It is in no list any more, and is there again when something of it comes. What it did stays known for its time:\n`redrive job show`, `redrive activity`. One that redrive.toml defines, or that a worker works on, is refused."
    )]
    Forget {
        /// The pipeline
        name: PipelineName,
    },
}

#[derive(Debug, Args)]
pub struct PipelineShowArgs {
    /// The pipeline
    pub name: PipelineName,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct PauseArgs {
    /// The pipeline
    pub name: PipelineName,
    /// Until this time: 2h (from now), 2026-11-20 or 2026-11-20T08:00:00Z [default: until it is resumed]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Why, for who wonders
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub why: Option<String>,
}
