//! What can be typed about tokens.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use redrive_core::ids::TokenName;
use redrive_core::tokens::{PipelinePattern, Role};

use super::JsonArgs;

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print its secret, once
    #[command(
        after_help = "Examples:\n  redrive token create ops --role admin\n  redrive token create crawler-3 --role worker --pipeline 'shop-*' --expires 90d\n\nThe first token must be an admin's: from then on everybody who asks a server needs one."
    )]
    Create(TokenCreateArgs),
    /// List tokens, without their secrets
    List(JsonArgs),
    /// Revoke a token: servers refuse it within a second
    Revoke {
        /// The token
        name: TokenName,
    },
    /// Revoke all tokens and make one for an admin, if nobody has one any more
    Reset,
}

fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|name| name.parse::<Role>())
}

/// A pattern, also where a blank stands after a comma.
fn pattern(text: &str) -> Result<PipelinePattern, String> {
    text.trim().parse()
}

#[derive(Debug, Args)]
pub struct TokenCreateArgs {
    /// What it is called, in the list and in the record of what it did
    pub name: TokenName,
    /// What it may do, each also what those before it may: read; report, lease and settle; replay and act on causes, breakers and
    /// pipelines; discard and handle tokens
    #[arg(long, value_parser = role())]
    pub role: Role,
    /// Only for this pipeline, or for those whose names begin so: 'shop-*'; several with commas, or given more than once
    #[arg(long, short, value_name = "NAME", value_delimiter = ',', value_parser = pattern)]
    pub pipeline: Vec<PipelinePattern>,
    /// It may not read payloads
    #[arg(long)]
    pub no_payloads: bool,
    /// When it is no longer good: 90d (from now), 2026-11-20 or 2026-11-20T08:00:00Z [default: never]
    #[arg(long, value_name = "TIME")]
    pub expires: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
