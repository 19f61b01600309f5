//! What can be typed about the store itself.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Make the store, or bring it to the version of this redrive
    Migrate(MigrateArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Every command that opens a store brings it forward. This one does nothing else: it can be run by a role that may, before workers start whose role may not.\n\nExamples:\n  redrive store migrate\n  redrive store migrate --print | psql -d redrive       PostgreSQL: by whoever applies SQL"
)]
pub struct MigrateArgs {
    /// Print the SQL that would do it and do nothing; only for a store in PostgreSQL
    #[arg(long)]
    pub print: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "print")]
    pub json: bool,
}
