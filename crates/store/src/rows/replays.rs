//! Replays.

use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::jobs::Lease;
use redrive_core::replays::{LetterFacts, Progress, SavedPayload, Step};

use super::{Columns, job_id, json, json_opt, parsed, tally, time, time_opt, token};
use crate::contract::{FoundLetter, PendingDead, PendingLetter, ReplayGroup, ReplayView, SentLetter};
use crate::lists;

/// The columns of [`replay_view`], of `replay r`. Letters were chosen by when they died: the first of each pipeline is its oldest.
pub(crate) const REPLAY_COLUMNS: &str = "r.id, r.uuid, r.name, r.actor, r.state, r.why, r.mode, r.force_why, r.automatic, r.selection, r.pacing,
    r.edits, r.excluded, r.created_at, r.finished_at, r.total, r.pending, r.running, r.recovered, r.failed, r.same_cause,
    r.gone, r.step, r.step_sent, r.step_settled, r.step_failed, r.free_at, r.pipelines, r.version, r.saved, r.wish,
    r.cursor, r.forgiven, r.pins, (SELECT count(*) FROM replay_letter l WHERE l.replay = r.id AND l.processed AND l.state = 'running'), r.moved_at,
    (SELECT min(died_at) FROM
        (SELECT (SELECT d.died_at FROM replay_letter l JOIN dead d ON d.id = l.job
                 WHERE l.replay = r.id AND l.pipeline = p.id AND l.state = 'pending' ORDER BY l.n LIMIT 1) AS died_at
         FROM pipeline p WHERE r.finished_at IS NULL AND r.pipelines LIKE '%\"' || p.name || '\"%'
         UNION ALL
         SELECT (SELECT CAST(l.letter ->> 'died_at' AS bigint) FROM replay_letter l
                 WHERE l.replay = r.id AND l.pipeline = p.id AND l.state = 'running' ORDER BY l.n LIMIT 1)
         FROM pipeline p WHERE r.finished_at IS NULL AND r.pipelines LIKE '%\"' || p.name || '\"%') oldest)";

/// The number of a replay's row, and the replay.
pub(crate) fn replay_view<R: Columns>(row: &R) -> Result<(i64, ReplayView), R::Fault> {
    let step = Step { number: row.get(22)?, sent: row.get(23)?, settled: row.get(24)?, failed: row.get(25)? };
    let progress = Progress {
        total: row.get(15)?,
        pending: row.get(16)?,
        running: row.get(17)?,
        processed: row.get(34)?,
        recovered: row.get(18)?,
        failed: row.get(19)?,
        same_cause: row.get(20)?,
        gone: row.get(21)?,
        forgiven: row.get(32)?,
        step,
        free_at: time(row, 26)?,
    };
    let view = ReplayView {
        id: row.get(1).map(ReplayId::from_bytes)?,
        version: row.get(28)?,
        name: row.get(2)?,
        actor: row.get(3)?,
        state: parsed(row, 4)?,
        why: row.get(5)?,
        mode: parsed(row, 6)?,
        saved: row.get(29)?,
        force_why: row.get(7)?,
        automatic: row.get(8)?,
        selection: json(row, 9)?,
        wish: json(row, 30)?,
        cursor: row.get(31)?,
        pacing: json(row, 10)?,
        edits: json(row, 11)?,
        excluded: json(row, 12)?,
        progress,
        pipelines: json(row, 27)?,
        pins: json(row, 33)?,
        moved_at: time(row, 35)?.max(time(row, 13)?),
        oldest: time_opt(row, 36)?,
        created_at: time(row, 13)?,
        finished_at: time_opt(row, 14)?,
    };
    Ok((row.get(0)?, view))
}

/// The facts in nine columns: pipeline, reason, gate, claimed, payload, replays by itself, shut, recovered, what is lacking.
pub(crate) fn letter_facts<R: Columns>(row: &R, first: usize) -> Result<LetterFacts, R::Fault> {
    facts_of(row, parsed(row, first)?, first + 1)
}

/// The same of a letter whose pipeline is known.
pub(crate) fn facts_of<R: Columns>(row: &R, pipeline: PipelineName, first: usize) -> Result<LetterFacts, R::Fault> {
    Ok(LetterFacts {
        pipeline,
        reason: parsed(row, first)?,
        gate: parsed(row, first + 1)?,
        claimed: row.get(first + 2)?,
        payload: saved_payload(row, first + 3)?,
        auto_replays: row.get(first + 4)?,
        shut: row.get(first + 5)?,
        recovered: row.get(first + 6)?,
        lost: lists::texts(json_opt(row, first + 7)?),
    })
}

fn saved_payload<R: Columns>(row: &R, column: usize) -> Result<SavedPayload, R::Fault> {
    Ok(match row.text(column)? {
        "kept" => SavedPayload::Kept,
        "lost" => SavedPayload::Lost,
        "elsewhere" => SavedPayload::Elsewhere,
        "cut" => SavedPayload::Cut,
        _ => SavedPayload::Gone,
    })
}

/// A letter that was found, after its place among the others.
pub(crate) fn found_letter<R: Columns>(row: &R) -> Result<((i64, i64), FoundLetter), R::Fault> {
    let (died_at, seq): (i64, i64) = (row.get(0)?, row.get(1)?);
    let (id, facts, cursor) = (job_id(row, 2)?, letter_facts(row, 3)?, format!("{died_at}-{seq}"));
    Ok(((died_at, seq), FoundLetter { id, facts, letter: None, cursor }))
}

pub(crate) fn pending_letter<R: Columns>(row: &R) -> Result<PendingLetter, R::Fault> {
    let dead = match json_opt(row, 3)? {
        Some(input) => Some(PendingDead {
            input,
            target: row.get(4)?,
            crashes: row.get(5)?,
            suspect: row.get(6)?,
            origin: json_opt(row, 7)?,
        }),
        None => None,
    };
    Ok(PendingLetter { job: job_id(row, 1)?, saved: row.get(2)?, dead })
}

pub(crate) fn sent_letter<R: Columns>(row: &R) -> Result<SentLetter, R::Fault> {
    let job = job_id(row, 0)?;
    let lost = match row.get::<Option<u64>>(15)? {
        Some(epoch) => Some(Lease { job, token: token(row, 14)?, epoch }),
        None => None,
    };
    Ok(SentLetter {
        job,
        pipeline: parsed(row, 1)?,
        target: row.get(12)?,
        tally: tally(row, 2)?,
        lost,
        begun: row.get(13)?,
        in_worker: row.get::<Option<i64>>(16)? == Some(1),
        gate: parsed(row, 9)?,
        verdict: row.get(10)?,
        failure: None,
    })
}

/// Open letters of a group: its pipeline and name, then how many.
pub(crate) fn replay_group<R: Columns>(row: &R) -> Result<ReplayGroup, R::Fault> {
    Ok(ReplayGroup { pipeline: parsed(row, 0)?, group: row.get(1)?, open: row.get(2)? })
}
