//! `redrive doctor`: says what is well and what is not.

use anyhow::Result;
use redrive::Error;
use redrive::doctor::{Finding, examine};
use redrive_core::failures::with_sources;

use crate::advice;
use crate::args::Global;
use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{BAD, GOOD, paint};
use crate::output::print::out;
use crate::setting;

pub async fn run(global: &Global, json: bool) -> Result<Exit> {
    let mut findings = match setting::load(global) {
        Ok(setting) => examine(&setting).await,
        Err(error) => vec![Finding::new("configuration", Err(with_sources(&error)))],
    };
    for finding in &mut findings {
        if let Some(Error::Store(error)) = &finding.error {
            finding.found = advice::told(error);
        }
    }
    if json {
        json::document(&findings)?;
    } else {
        for Finding { check, ok, found, .. } in &findings {
            let mark = if *ok { paint(GOOD, "✓") } else { paint(BAD, "✗") };
            out!("{mark} {check}: {found}")?;
        }
    }
    Ok(if findings.iter().all(|finding| finding.ok) { Exit::Ok } else { Exit::Failed })
}
