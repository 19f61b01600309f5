//! The arguments of `redrive activity`.

use clap::Args;
use redrive_core::ids::PipelineName;

use super::PageArgs;

pub(super) const ACTIVITY_EXAMPLES: &str = "\
Of what Redrive does by itself it lists replays that it begins or pauses, causes that a replay resolved, and pauses of pipelines
that come to their end. All is forgotten after 90 days.

Examples:
  redrive activity --since 2h
  redrive activity --pipeline catalog --json";

#[derive(Debug, Args)]
pub struct ActivityArgs {
    /// Only what concerned this pipeline
    #[arg(long, short, value_name = "NAME")]
    pub pipeline: Option<PipelineName>,
    /// Only from this time on: 2h (ago), 2026-11-15 or 2026-11-15T14:02:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only what this person did
    #[arg(long, value_name = "NAME")]
    pub who: Option<String>,
    /// Only what was done so: discard, resolve, hold
    #[arg(long, value_name = "VERB")]
    pub verb: Option<String>,
    /// Only what was done to things with this in their name: 'cause 240f8c6b'
    #[arg(long, value_name = "TEXT")]
    pub object: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
}
