//! What can be typed for backups.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "The file is a tar archive: the store, and the payloads if the vault is a folder. Work goes on meanwhile.\n\nExamples:\n  redrive backup before-upgrade.tar\n  redrive backup /backups/redrive-$(date +%F).tar\n  redrive backup nightly.tar --force       write over the last one, once the new one is whole"
)]
pub struct BackupArgs {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "There must be no store yet where it goes.\n\nExamples:\n  redrive restore before-upgrade.tar\n  redrive restore nightly.tar --store sqlite:looked-at/redrive.db      beside the one in use"
)]
pub struct RestoreArgs {
    /// The file that `redrive backup` wrote
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
