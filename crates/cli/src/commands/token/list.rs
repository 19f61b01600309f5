//! `redrive token list`.

use std::io;

use anyhow::Result;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Token;

use crate::exit::Exit;
use crate::output::print::out;
use crate::output::times::{ago, from_now};
use crate::output::{json, table};
use crate::setting::Setting;

pub async fn run(setting: &Setting, as_json: bool) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let tokens = redrive.list_tokens().await?;
    if as_json {
        tokens.iter().try_for_each(json::line)?;
    } else if tokens.is_empty() {
        out!("no tokens: whoever reaches a server of this store on this machine may do everything")?;
    } else {
        print(&tokens, redrive.now())?;
    }
    Ok(Exit::Ok)
}

fn print(tokens: &[Token], now: Timestamp) -> io::Result<()> {
    let row = |token: &Token| {
        let patterns: Vec<_> = token.pipelines.iter().map(ToString::to_string).collect();
        vec![
            token.name.to_string(),
            token.role.to_string(),
            state(token, now),
            if token.payloads { "yes" } else { "no" }.to_owned(),
            ago(token.created_at, now),
            token.last_used_at.map_or_else(|| "never".to_owned(), |at| ago(at, now)),
            if patterns.is_empty() { "all".to_owned() } else { patterns.join(" ") },
        ]
    };
    let headings = ["~=token", "role", "state", "?payloads", "?>made", ">last used", "pipelines"];
    table::print_titled(&headings, &tokens.iter().map(row).collect::<Vec<_>>())
}

fn state(token: &Token, now: Timestamp) -> String {
    match (token.is_good(now), token.revoked_at, token.expires_at) {
        (true, _, Some(at)) => format!("good, expires {}", from_now(at, now)),
        (true, _, None) => "good".to_owned(),
        (false, Some(_), _) => "revoked".to_owned(),
        (false, None, _) => "expired".to_owned(),
    }
}
