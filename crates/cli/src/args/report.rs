//! What can be typed about analysis.

use std::path::PathBuf;

use clap::Args;
use redrive::contract::DeadBy;
use redrive_core::ids::PipelineName;

use super::DeadFilterArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  redrive report\n  redrive report --since 24h --html report.html")]
pub struct ReportArgs {
    /// From this time on: 24h (ago), 2026-11-15 or 2026-11-15T14:02:00Z
    #[arg(long, value_name = "TIME", default_value = "7d")]
    pub since: String,
    /// Only of this pipeline
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Write a page with charts, which opens without network
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV: a line for each number, with what it is part of
    #[arg(long)]
    pub csv: bool,
}

#[derive(Debug, Args)]
pub struct TopArgs {
    /// By what: pipeline, reason, code, status, target, proxy, cause, hour (of the day, UTC), or input.FIELD
    #[arg(long, default_value = "reason", value_parser = by)]
    pub by: TopBy,
    #[command(flatten)]
    pub filter: DeadFilterArgs,
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print JSON Lines
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV
    #[arg(long)]
    pub csv: bool,
}

/// What dead letters are counted by.
#[derive(Clone, Debug)]
pub struct TopBy(pub DeadBy);

fn by(text: &str) -> Result<TopBy, String> {
    text.parse().map(TopBy)
}
