//! What can be typed about stores.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Copy everything to another store, which must be empty
    Copy(StoreCopyArgs),
    /// Make the store, or bring it to the version of this redrive
    Migrate(MigrateArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Nobody may work on either store. Tasks that were left running become queued. What is copied is counted and audited on both sides.\nStopped in the middle, the same command goes on where it was; until then neither store takes anything.\nPayloads come to the vault of the second store: --vault, or what redrive.toml says if it names that store, or the folder beside a file.\nCommands and sinks are those of redrive.toml on each machine, as before.\n\nExamples:\n  redrive store copy sqlite:.redrive/redrive.db postgres://redrive@db/redrive --vault s3://bucket/prefix\n  redrive store copy postgres://redrive@db/redrive sqlite:here/redrive.db --from-vault s3://bucket/prefix\n  redrive store copy sqlite:.redrive/redrive.db --abort       give it up: the store can be worked on again"
)]
pub struct StoreCopyArgs {
    /// The store to copy
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The store to fill
    #[arg(value_name = "TO", required_unless_present = "abort", conflicts_with = "abort")]
    pub to: Option<String>,
    /// Where payloads come to: a folder, or s3://bucket/prefix
    #[arg(long, value_name = "URL", conflicts_with = "abort")]
    pub vault: Option<String>,
    /// Where payloads are [default: what redrive.toml says if it names the first store, or the folder beside a file]
    #[arg(long, value_name = "URL", conflicts_with = "abort")]
    pub from_vault: Option<String>,
    /// Go on though not one payload is found
    #[arg(long, conflicts_with = "abort")]
    pub allow_missing: bool,
    /// Give up a copy that was begun and not finished
    #[arg(long)]
    pub abort: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
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
