//! Dead letters.

use redrive_core::dead::DeadLetter;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::jobs::{progress_of_task, task_of_progress};
use redrive_core::payloads::{Payload, PayloadHash};
use serde_json::Value;

use super::{Columns, input, job_id, json_opt, parsed, parsed_opt, round, time};

/// The columns of [`dead_letter`], from `dead d` joined with `pipeline p`.
pub(crate) const DEAD_COLUMNS: &str = "d.seq, d.id, p.name, d.key, d.input, d.target, d.reason, d.code, d.message,
    d.attempts, d.crashes, d.replays, d.gate, d.accepted_at, d.died_at, d.http_status, d.proxy, d.payload, d.verdict, d.original,
    (SELECT c.name FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id = d.cause_key),
    d.payload_cut = 2, d.progress, d.round, d.origin, d.definition, d.payload_cut = 1,
    (SELECT y.place FROM payload y WHERE y.hash = d.payload), (SELECT y.unreadable FROM payload y WHERE y.hash = d.payload), d.uncounted";

pub(crate) fn dead_letter<R: Columns>(row: &R) -> Result<DeadLetter, R::Fault> {
    Ok(DeadLetter {
        id: job_id(row, 1)?,
        number: row.get(0)?,
        pipeline: parsed(row, 2)?,
        key: row.get(3)?,
        input: input(row, 4)?,
        target: row.get(5)?,
        reason: parsed(row, 6)?,
        code: row.get(7)?,
        message: row.get(8)?,
        attempts: row.get(9)?,
        uncounted: row.get(29)?,
        crashes: row.get(10)?,
        replays: row.get(11)?,
        gate: parsed(row, 12)?,
        accepted_at: time(row, 13)?,
        died_at: time(row, 14)?,
        http_status: row.get(15)?,
        proxy: row.get(16)?,
        payload: row.get::<Option<[u8; 32]>>(17)?.map(PayloadHash::from_bytes),
        verdict: row.get(18)?,
        original: json_opt(row, 19)?,
        cause: parsed_opt(row, 20)?,
        payload_place: parsed_opt(row, 27)?,
        payload_address: None,
        payload_missing: row.get(21)?,
        payload_unreadable: json_opt(row, 28)?,
        task_id: json_opt::<Value, _>(row, 22)?.as_ref().and_then(task_of_progress).map(str::to_owned),
        round: round(row, 23)?,
        origin: json_opt(row, 24)?,
        definition: row.get::<Option<String>>(25)?.map(DefinitionVersion::new),
        payload_cut: row.get(26)?,
        failures: None,
    })
}

/// The task that a letter left at a provider, as it is kept.
pub(crate) fn progress_of(letter: &DeadLetter) -> Option<String> {
    letter.task_id.as_deref().map(|id| progress_of_task(id).to_string())
}

/// The payload that a letter names, with what its failures know of it.
pub(crate) fn payload_of(letter: &DeadLetter) -> Option<Payload> {
    let hash = letter.payload?;
    Some(letter.saved_payload().cloned().unwrap_or_else(|| Payload::bare(hash, 0)))
}
