//! `redrive alert test`: whether what is told arrives.

use anyhow::Result;
use redrive_client::Desk;

use crate::args::AlertTestArgs;
use crate::exit::{Exit, usage};
use crate::output::json;
use crate::output::paint::{BAD, GOOD, paint};
use crate::output::print::out;
use crate::output::table::{folded, terminal_width};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: AlertTestArgs) -> Result<Exit> {
    let watching = setting.watching();
    let desk = match setting.server() {
        // The sinks are those of the server's file, and it is the server that must reach them.
        Some(server) => Desk::There(server.clone()),
        // Nothing is written: a store that is not there need not be.
        None => Desk::Here(redrive::Redrive::open("memory:").await?),
    };
    let none = |whose: &str| usage(format!("there is no sink to test: {whose} has them as [alerts.sink.NAME]"));
    if setting.server().is_none() && watching.sinks().is_empty() {
        return Err(none("redrive.toml"));
    }
    let tested = desk.test_sinks(&watching, &args.sinks).await?;
    if tested.is_empty() {
        return Err(none("redrive.toml of the server"));
    }
    if args.json {
        json::document(&tested)?;
    } else {
        for test in &tested {
            match &test.error {
                None => out!("{} {} ({}) was told", paint(GOOD, "✓"), test.sink, test.kind)?,
                Some(error) => {
                    let said = format!("✗ {} ({}): {error}", test.sink, test.kind);
                    let lines =
                        terminal_width().map_or_else(|| vec![said.clone()], |width| folded(&said, "    ", width));
                    out!("{}", lines.join("\n").replacen('✗', &paint(BAD, "✗"), 1))?;
                }
            }
        }
    }
    Ok(if tested.iter().all(|test| test.error.is_none()) { Exit::Ok } else { Exit::Failed })
}
