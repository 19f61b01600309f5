//! What can be typed about working without end.

use std::path::PathBuf;

use clap::Args;

use super::HandlerArgs;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  redrive work                                   all pipelines of redrive.toml\n  redrive work --pipeline catalog --pipeline prices\n  redrive work --pipeline catalog -- python3 scrape.py"
)]
pub struct WorkArgs {
    /// Stop when nothing is left to do
    #[arg(long)]
    pub drain: bool,
    /// With --drain: give a pipeline up when nothing of it was settled for so long: what waits for a target that stays away is a dead letter
    /// then; replays are waited for
    #[arg(long, value_name = "TIME|forever", default_value = "10m", requires = "drain",
          value_parser = redrive::config::units::wait)]
    pub max_wait: redrive::config::units::Wait,
    /// Append results to this file; without it they go where they went before, or are printed
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub handler: HandlerArgs,
}
