//! `redrive alert test`: whether what is told arrives.

use anyhow::Result;

use crate::args::AlertTestArgs;
use crate::exit::{Exit, usage};
use crate::output::json;
use crate::output::paint::{BAD, GOOD, paint};
use crate::output::print::out;
use crate::output::table::{folded, terminal_width};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: AlertTestArgs) -> Result<Exit> {
    let watching = setting.watching();
    if watching.sinks().is_empty() {
        return Err(usage("there is no sink to test: redrive.toml has them as [alerts.sink.NAME]"));
    }
    // Nothing is written: a store that is not there need not be.
    let tested = redrive::Redrive::open("memory:").await?.test_sinks(&watching, &args.sinks).await?;
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
