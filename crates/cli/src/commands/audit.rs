//! `redrive audit`: recounts everything and says what does not add up.

use anyhow::Result;

use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{BAD, GOOD, paint};
use crate::output::print::out;
use crate::output::table;
use crate::setting::Setting;

pub async fn run(setting: &Setting, json: bool) -> Result<Exit> {
    let audit = setting.desk().await?.audit().await?;
    let exit = if audit.problems.is_empty() { Exit::Ok } else { Exit::NotSound };
    if json {
        json::document(&audit)?;
        return Ok(exit);
    }
    let rows: Vec<_> = audit
        .pipelines
        .iter()
        .map(|audited| {
            let l = &audited.counted;
            let counts = [l.accepted, l.queued, l.leased, l.done, l.dead, l.discarded];
            std::iter::once(audited.pipeline.to_string()).chain(counts.map(|count| count.to_string())).collect()
        })
        .collect();
    table::print(&["~=counted", ">tasks", ">queued", ">running", ">done", ">died", ">discarded"], &rows)?;
    for problem in &audit.problems {
        out!("{} {problem}", paint(BAD, "✗"))?;
    }
    if audit.problems.is_empty() {
        out!("{} every accepted task is in exactly one state, and the ledger agrees", paint(GOOD, "✓"))?;
    }
    Ok(exit)
}
