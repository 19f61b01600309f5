//! `redrive result`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use redrive_core::ids::{PipelineName, RoundName};

#[derive(Debug, Subcommand)]
pub enum ResultCommand {
    /// Write the results that the store keeps, as JSON Lines
    #[command(after_help = EXAMPLES)]
    Export(ResultExportArgs),
}

const EXAMPLES: &str = "\
Results are kept for 7 days if they go to no file. `keep_results` and `kept_results_max` change that for a pipeline.

Examples:
  redrive result export results.jsonl
  redrive result export --pipeline shop --since 2h --bare";

#[derive(Debug, Args)]
pub struct ResultExportArgs {
    /// A new file, or - for standard output
    #[arg(default_value = "-")]
    pub file: PathBuf,
    /// Only of this pipeline
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Only of this round
    #[arg(long, value_name = "NAME")]
    pub round: Option<RoundName>,
    /// Only of tasks done since: 2h (ago), a day or a time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only of tasks done before: 2h (ago), a day or a time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only the results, without the tasks that they are of
    #[arg(long)]
    pub bare: bool,
}
