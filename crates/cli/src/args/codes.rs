//! What can be typed to see the built-in tables.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  redrive codes                              which tables there are\n  redrive codes in-res                       what the codes of such a provider mean\n  redrive codes in-res --json > mine.json    a table of your own to begin with: codes = \"mine.json\"\n  redrive codes mine.json                    is it read as you meant it?"
)]
pub struct CodesArgs {
    /// A built-in table, or a JSON file with one of your own
    pub table: Option<String>,
    /// Print JSON; that of a provider's table is what a file of your own looks like
    #[arg(long)]
    pub json: bool,
}
