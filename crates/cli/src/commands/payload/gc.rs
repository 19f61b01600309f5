//! `redrive payload gc`: removes what nothing refers to.

use std::time::Duration;

use anyhow::Result;
use redrive::vault::Vault;

use crate::exit::Exit;
use crate::output::print::out;

pub async fn run(vault: &Vault, grace: Duration, json: bool) -> Result<Exit> {
    let collected = vault.collect(grace).await?;
    match json {
        true => out!("{}", serde_json::to_string(&collected)?)?,
        false => out!("{} unused payloads removed, and {} strays", collected.unused, collected.strays)?,
    }
    Ok(Exit::Ok)
}
