//! What can be typed for a look at whether all is well.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "It writes a small payload of its own to the vault, reads it back and removes it.\n\nExamples:\n  redrive doctor                     exits with 1 if anything is not well\n  redrive doctor --compact           while no worker runs"
)]
pub struct DoctorArgs {
    /// Write the store anew without the space that it no longer uses; needs up to twice its size on disk, and no worker may run
    #[arg(long)]
    pub compact: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
