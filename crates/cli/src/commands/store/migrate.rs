//! `redrive store migrate`: makes the store or brings it forward; or prints what would.

use anyhow::Result;
use redrive::config::Setting;
use serde_json::json;

use crate::args::MigrateArgs;
use crate::exit::Exit;
use crate::output::json;
use crate::output::print::{out, say};

pub async fn run(setting: &Setting, args: MigrateArgs) -> Result<Exit> {
    if args.print {
        return print(setting).await;
    }
    let health = setting.redrive().await?.store().health().await?;
    if args.json {
        json::document(&json!({"store": health.location, "schema": health.schema_version}))?;
    } else {
        out!("{} is at schema {}", health.location, health.schema_version)?;
    }
    Ok(Exit::Ok)
}

/// Prints the SQL and nothing else; what is said about it goes elsewhere.
async fn print(setting: &Setting) -> Result<Exit> {
    let migration = setting.migration().await?;
    if migration.sql.is_empty() {
        say!("{} is at schema {}: there is nothing to do", migration.place, migration.to);
        return Ok(Exit::Ok);
    }
    match migration.from {
        Some(from) => out!("-- {}: from schema {from} to {}", migration.place, migration.to)?,
        None => out!("-- {}: a new store, schema {}", migration.place, migration.to)?,
    }
    out!("{}", migration.sql.trim_end())?;
    Ok(Exit::Ok)
}
