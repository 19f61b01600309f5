//! `redrive round`.

use clap::{Args, Subcommand};
use redrive_core::ids::PipelineName;

#[derive(Debug, Subcommand)]
pub enum RoundCommand {
    /// List rounds with their ledgers, the newest first
    #[command(after_help = "Examples:\n  redrive round list\n  redrive round list --pipeline catalog --json")]
    List(RoundListArgs),
}

#[derive(Debug, Args)]
pub struct RoundListArgs {
    /// Only of this pipeline
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print JSON Lines
    #[arg(long)]
    pub json: bool,
}
