//! `redrive token create` and `redrive token reset`: the secret is printed once, to standard output and nowhere else.

use anyhow::Result;
use redrive::config::units;
use redrive::tokens::{MadeToken, NewToken};
use serde_json::json;

use super::super::filter::actor;
use crate::args::TokenCreateArgs;
use crate::exit::{Exit, usage};
use crate::output::json;
use crate::output::print::{out, say};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: TokenCreateArgs) -> Result<Exit> {
    let redrive = setting.desk_or_new().await?;
    let now = redrive.now();
    let expires_at = args.expires.map(|text| units::future(&text, now)).transpose().map_err(usage)?;
    let new = NewToken {
        name: args.name,
        role: args.role,
        pipelines: args.pipeline,
        payloads: !args.no_payloads,
        expires_at,
    };
    let made = redrive.create_token(&new, &actor()).await?;
    match args.json {
        true => {
            let mut document = serde_json::to_value(&made.token)?;
            document["secret"] = json!(made.secret);
            json::document(&document)?;
        }
        false => tell(&made)?,
    }
    Ok(Exit::Ok)
}

pub async fn reset(setting: &Setting) -> Result<Exit> {
    let made = setting.redrive_existing().await?.reset_tokens(&actor()).await?;
    say!("all other tokens are revoked");
    tell(&made)?;
    Ok(Exit::Ok)
}

fn tell(made: &MadeToken) -> Result<()> {
    say!("token {} ({}): this is shown once, and kept nowhere", made.token.name, made.token.role);
    Ok(out!("{}", made.secret)?)
}
