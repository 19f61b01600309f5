//! Which dead letters a replay could take: what is known of them, counted or one by one, and claiming those that were chosen.

use redrive_core::failures::Reason;
use redrive_core::ids::{JobId, TryId};
use redrive_core::replays::LetterFacts;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{dead, replays, rows, tries};
use crate::contract::{ClaimLetters, ClaimedLetters, FindLetters, FoundLetter, Page, SurveyLetters};
use crate::lists;

/// Whether a letter's target's breaker is not closed.
const SHUT: &str = "EXISTS (SELECT 1 FROM breaker b WHERE b.pipeline = d.pipeline AND b.target = d.target AND b.shut)";

/// Whether another replay has a letter. If none has any, none need be asked for.
async fn claimed(conn: &Conn) -> Result<&'static str, Fault> {
    Ok(match conn.exists("SELECT 1 FROM replay_letter WHERE claimed LIMIT 1", args![]).await? {
        true => "EXISTS (SELECT 1 FROM replay_letter r WHERE r.job = d.id AND r.claimed)",
        false => "false",
    })
}

/// What a letter lacks that may not be replayed for want of it: not one that somebody has changed since.
const LACKING: &str =
    "CASE WHEN d.gate = 'never' AND d.original IS NULL THEN (d.origin::json -> 'lost_input')::text END";

/// What is known of a letter's payload; `host` is the value that this machine is bound to.
fn payload_closely(host: &str) -> String {
    format!(
        "CASE WHEN d.payload IS NULL THEN CASE WHEN d.payload_lost THEN 'lost' ELSE 'gone' END
              WHEN d.payload_cut = 2 OR NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = d.payload AND p.unreadable IS NULL)
              THEN 'gone'
              WHEN EXISTS (SELECT 1 FROM payload p WHERE p.hash = d.payload AND p.spooled_on <> {host}) THEN 'elsewhere'
              WHEN d.payload_cut <> 0 THEN 'cut' ELSE 'kept' END"
    )
}

/// Whether a try recovered a letter as it is. Without a try that does not matter.
async fn recovered(conn: &Conn, tried: Option<TryId>) -> Result<String, Fault> {
    let row = match tried {
        Some(id) => tries::row(conn, id).await?,
        None => None,
    };
    Ok(row.map_or_else(
        || "false".to_owned(),
        |row| {
            format!(
                "EXISTS (SELECT 1 FROM try_letter t WHERE t.try = {row} AND t.job = d.id AND t.recovered
                         AND t.attempts = d.attempts)"
            )
        },
    ))
}

pub(super) async fn survey(conn: &Conn, params: &SurveyLetters) -> Result<Vec<(LetterFacts, u64)>, Fault> {
    // Without an end all that are dead are meant, also those that died while the clock was ahead.
    let mut conditions = dead::conditions(conn, &params.selection.filter).await?;
    conditions.ids("d.id", &params.selection.ids);
    let payload = match params.closely.as_slice() {
        [] => "'gone'".to_owned(),
        reasons => {
            let host = conditions.bind(params.host.as_str());
            let reasons = conditions.bind(reasons.iter().map(|reason: &Reason| reason.as_str()).collect::<Vec<_>>());
            let closely = payload_closely(&host);
            format!("CASE WHEN d.reason = ANY({reasons}) THEN {closely} ELSE 'gone' END")
        }
    };
    let (auto_replays, shut) = if params.automatic { ("d.auto_replays", SHUT) } else { ("0::bigint", "false") };
    let (claimed, recovered) = (claimed(conn).await?, recovered(conn, params.tried).await?);
    let lacking = if params.lacking { LACKING } else { "NULL::text" };
    let sql = format!(
        "SELECT (SELECT name FROM pipeline WHERE id = f.pipeline), f.reason, f.gate, f.claimed, f.payload, f.auto_replays,
                f.shut, f.recovered, f.lacking, count(*)
         FROM (SELECT d.pipeline, d.reason, d.gate, {claimed} AS claimed, {payload} AS payload,
                      {auto_replays} AS auto_replays, {shut} AS shut, {recovered} AS recovered, {lacking} AS lacking
               FROM dead d {conditions}) f
         GROUP BY f.pipeline, f.reason, f.gate, f.claimed, f.payload, f.auto_replays, f.shut, f.recovered, f.lacking"
    );
    conn.query(&sql, conditions.values(), |row| Ok((rows::letter_facts(row, 0)?, row.get(9)?))).await
}

pub(super) async fn find(conn: &Conn, params: &FindLetters) -> Result<Page<FoundLetter>, Fault> {
    let (claimed, recovered) = (claimed(conn).await?, recovered(conn, params.tried).await?);
    let limit = params.limit.saturating_add(1);
    let mut all = Vec::new();
    for mut conditions in dead::conditions_by_key(conn, &params.selection.filter).await? {
        conditions.ids("d.id", &params.selection.ids);
        if let Some(cursor) = &params.cursor {
            conditions.more_than_pair(("d.died_at", "d.seq"), lists::keyset(cursor)?);
        }
        if let Some(replay) = params.opened {
            conditions.less_than("d.opened_before", Some(replays::get(conn, replay).await?.0));
        }
        let payload = payload_closely(&conditions.bind(params.host.as_str()));
        let sql = format!(
            "SELECT d.died_at, d.seq, d.id, p.name, d.reason, d.gate, {claimed}, {payload}, d.auto_replays, {SHUT}, {recovered},
                    {LACKING}
             FROM dead d JOIN pipeline p ON p.id = d.pipeline {conditions} ORDER BY d.died_at, d.seq LIMIT {limit}"
        );
        all.extend(conn.query(&sql, conditions.values(), |row| rows::found_letter(row)).await?);
    }
    all.sort_by_key(|(place, _)| *place);
    all.truncate(limit as usize);
    let all = all.into_iter().map(|(_, found)| found).collect();
    let mut page = Page::cut(all, params.limit, |found: &FoundLetter| found.cursor.clone());
    if params.whole {
        for found in &mut page.items {
            found.letter = dead::get(conn, found.id).await?;
        }
    }
    Ok(page)
}

/// Claims letters, if the replay is still as it was and they are still dead and nobody's.
pub(super) async fn claim(batch: &mut Batch, params: &ClaimLetters) -> Result<Option<ClaimedLetters>, Fault> {
    let sql = "UPDATE replay SET version = version + 1, cursor = $3, excluded = $4, pipelines = $5
               WHERE uuid = $1 AND version = $2 AND state = 'preparing' RETURNING id, total, version";
    let (excluded, pipelines) = (serde_json::to_string(&params.excluded)?, serde_json::to_string(&params.pipelines)?);
    let next = args![params.id, params.was, params.cursor, excluded, pipelines];
    let found: Option<(i64, i64, u64)> =
        batch.conn().query_opt(sql, next, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await?;
    let Some((replay, total, version)) = found else { return Ok(None) };
    let (jobs, saved): (Vec<JobId>, Vec<bool>) = params.letters.iter().copied().unzip();
    let sql = "INSERT INTO replay_letter (replay, n, job, pipeline, cause_key, state, saved)
               SELECT $1, $2 + row_number() OVER (ORDER BY u.place), d.id, d.pipeline, d.cause_key, 'pending', u.saved
               FROM (SELECT DISTINCT ON (job) job, saved, place
                     FROM unnest($3::uuid[], $4::boolean[]) WITH ORDINALITY AS u(job, saved, place) ORDER BY job, place) u
               JOIN dead d ON d.id = u.job
               WHERE NOT EXISTS (SELECT 1 FROM replay_letter r WHERE r.job = d.id AND r.claimed)
               RETURNING saved";
    let claimed: Vec<bool> = batch.conn().query(sql, args![replay, total, jobs, saved], |row| row.get(0)).await?;
    let (count, from_saved) = (claimed.len(), claimed.iter().filter(|saved| **saved).count());
    let sql = "UPDATE replay SET total = total + $2, pending = pending + $2, saved = saved + $3 WHERE id = $1";
    batch.conn().execute(sql, args![replay, count, from_saved]).await?;
    let claimed = count as u64;
    Ok(Some(ClaimedLetters { version, claimed, refused: params.letters.len() as u64 - claimed }))
}
