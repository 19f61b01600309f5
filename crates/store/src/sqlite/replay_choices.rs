//! Which dead letters a replay could take: what is known of them, counted or one by one, and claiming those that were chosen.

use std::collections::BTreeMap;

use redrive_core::ids::TryId;
use redrive_core::replays::LetterFacts;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::batch::Batch;
use super::dead;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{replays, tries};
use crate::contract::{ClaimLetters, ClaimedLetters, FindLetters, FoundLetter, Page, SurveyLetters};
use crate::lists;

/// Whether a letter's target's breaker is not closed.
const SHUT: &str = "EXISTS (SELECT 1 FROM breaker b WHERE b.pipeline = d.pipeline AND b.target = d.target
                            AND b.breaker ->> 'state' <> 'closed')";

/// What a letter lacks that may not be replayed for want of it: not one that somebody has changed since.
const LACKING: &str = "CASE WHEN d.gate = 'never' AND d.original IS NULL THEN d.origin -> 'lost_input' END";

/// What is known of a letter's payload; `host` is the value that this machine is bound to.
fn payload_closely(host: &str) -> String {
    format!(
        "CASE WHEN d.payload IS NULL THEN iif(d.payload_lost, 'lost', 'gone') WHEN d.payload_cut = 2 THEN 'gone'
              ELSE ifnull((SELECT CASE WHEN p.unreadable IS NOT NULL THEN 'gone' WHEN p.spooled_on <> {host} THEN 'elsewhere' WHEN d.payload_cut THEN 'cut' ELSE 'kept' END
                           FROM payload p WHERE p.hash = d.payload), 'gone') END"
    )
}

/// The same while every payload can be read here, as far as is known, word for word as it is in the indexes: nothing else is read then. A payload that
/// a letter refers to is never swept.
const PAYLOAD: &str =
    "CASE WHEN d.payload IS NULL THEN iif(d.payload_lost, 'lost', 'gone') WHEN d.payload_cut = 2 THEN 'gone'
                            WHEN d.payload_cut THEN 'cut' ELSE 'kept' END";

/// Returns true if payloads wait on other machines, or were found to be gone.
fn any_out_of_reach(conn: &Connection, host: &str) -> Result<bool, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM payload WHERE spooled_on < ?1) OR EXISTS (SELECT 1 FROM payload WHERE spooled_on > ?1)
             OR EXISTS (SELECT 1 FROM payload WHERE unreadable IS NOT NULL)",
    )?;
    Ok(select.query_row([host], |row| row.get(0))?)
}

/// Whether another replay has a letter. If none has any, none need be asked for.
fn claimed(conn: &Connection) -> Result<&'static str, Fault> {
    let any = "SELECT 1 FROM replay_letter INDEXED BY replay_letter_claim WHERE claimed = 1 LIMIT 1";
    Ok(match conn.prepare_cached(any)?.exists([])? {
        true => "EXISTS (SELECT 1 FROM replay_letter r WHERE r.job = d.id AND r.claimed = 1)",
        false => "0",
    })
}

/// Whether a try recovered a letter as it is. Without a try that does not matter.
fn recovered(conn: &Connection, tried: Option<TryId>) -> Result<String, Fault> {
    let row = tried.map(|id| tries::row(conn, id)).transpose()?.flatten();
    Ok(row.map_or_else(
        || "0".to_owned(),
        |row| {
            format!(
                "EXISTS (SELECT 1 FROM try_letter t WHERE t.try = {row} AND t.job = d.id AND t.recovered = 1
                         AND t.attempts = d.attempts)"
            )
        },
    ))
}

/// Counts letters by what is known of them.
pub(super) fn survey(conn: &Connection, params: &SurveyLetters) -> Result<Vec<(LetterFacts, u64)>, Fault> {
    // Without an end all that are dead are meant, also those that died while the clock was ahead.
    let mut conditions = dead::conditions(conn, &params.selection.filter)?;
    conditions.ids("d.id", &params.selection.ids)?;
    let close: Vec<String> = params.closely.iter().map(|reason| format!("'{reason}'")).collect();
    let payload = match close.as_slice() {
        [] => "'gone'".to_owned(),
        close => {
            let payload = match any_out_of_reach(conn, &params.host)? {
                true => payload_closely(&conditions.bind(params.host.clone())),
                false => PAYLOAD.to_owned(),
            };
            format!("CASE WHEN d.reason IN ({}) THEN {payload} ELSE 'gone' END", close.join(", "))
        }
    };
    let (auto_replays, shut) = if params.automatic { ("d.auto_replays", SHUT) } else { ("0", "0") };
    let (claimed, recovered) = (claimed(conn)?, recovered(conn, params.tried)?);
    // Where it does not matter, letters are counted by indexes alone.
    let lacking = if params.lacking { LACKING } else { "NULL" };
    let sql = format!(
        "SELECT d.pipeline, d.reason, d.gate, {claimed}, {payload}, {auto_replays}, {shut}, {recovered}, {lacking}
         FROM dead d {conditions}"
    );
    // What is the same for all need not be told apart.
    let differ = [
        (0, true),
        (1, params.selection.filter.reason.is_none()),
        (2, true),
        (3, claimed != "0"),
        (4, !params.closely.is_empty()),
        (5, params.automatic),
        (6, params.automatic),
        (7, recovered != "0"),
        (8, params.lacking),
    ];
    let differ = differ.into_iter().filter_map(|(column, differs)| differs.then_some(column)).collect();
    let mut kinds = Kinds { differ, known: BTreeMap::new(), kind: Vec::new() };
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(conditions.values())?;
    while let Some(row) = rows.next()? {
        kinds.add(conn, row)?;
    }
    Ok(kinds.known.into_values().collect())
}

/// Letters counted by what is known of them: of any number of letters there are few kinds, and SQLite would sort all of them to count.
struct Kinds {
    /// The columns by which they are told apart.
    differ: Vec<usize>,
    known: BTreeMap<Vec<u8>, (LetterFacts, u64)>,
    kind: Vec<u8>,
}

impl Kinds {
    fn add(&mut self, conn: &Connection, row: &Row<'_>) -> Result<(), Fault> {
        self.kind.clear();
        for column in &self.differ {
            match row.get_ref(*column)? {
                ValueRef::Integer(number) => self.kind.extend(number.to_le_bytes()),
                ValueRef::Text(text) => self.kind.extend(text),
                // Nothing else is asked for.
                _ => {}
            }
            self.kind.push(0);
        }
        if let Some((_, letters)) = self.known.get_mut(&self.kind) {
            *letters += 1;
            return Ok(());
        }
        let mut name = conn.prepare_cached("SELECT name FROM pipeline WHERE id = ?1")?;
        let pipeline = name.query_row([row.get::<_, i64>(0)?], |row| rows::parsed(row, 0))?;
        self.known.insert(self.kind.clone(), (rows::facts_of(row, pipeline, 1)?, 1));
        Ok(())
    }
}

pub(super) fn find(conn: &Connection, params: &FindLetters) -> Result<Page<FoundLetter>, Fault> {
    let (claimed, recovered) = (claimed(conn)?, recovered(conn, params.tried)?);
    let limit = params.limit.saturating_add(1);
    let mut all = Vec::new();
    for mut conditions in dead::conditions_by_key(conn, &params.selection.filter)? {
        conditions.ids("d.id", &params.selection.ids)?;
        if let Some(cursor) = &params.cursor {
            conditions.more_than_pair(("d.died_at", "d.seq"), lists::keyset(cursor)?);
        }
        if let Some(replay) = params.opened {
            conditions.less_than("d.opened_before", Some(replays::get(conn, replay)?.0));
        }
        let payload = payload_closely(&conditions.bind(params.host.clone()));
        let sql = format!(
            "SELECT d.died_at, d.seq, d.id, p.name, d.reason, d.gate, {claimed}, {payload}, d.auto_replays, {SHUT}, {recovered},
                    {LACKING}
             FROM dead d JOIN pipeline p ON p.id = d.pipeline {conditions} ORDER BY d.died_at, d.seq LIMIT {limit}"
        );
        let mut select = conn.prepare_cached(&sql)?;
        let rows = select.query_map(conditions.values(), |row| rows::found_letter(row))?;
        all.extend(rows.collect::<RowResult<Vec<_>>>()?);
    }
    all.sort_by_key(|(place, _)| *place);
    all.truncate(limit as usize);
    let all = all.into_iter().map(|(_, found)| found).collect();
    let mut page = Page::cut(all, params.limit, |found: &FoundLetter| found.cursor.clone());
    if params.whole {
        for found in &mut page.items {
            found.letter = dead::get(conn, found.id)?;
        }
    }
    Ok(page)
}

/// Claims letters, if the replay is still as it was and they are still dead and nobody's.
pub(super) fn claim(batch: &mut Batch<'_>, params: &ClaimLetters) -> Result<Option<ClaimedLetters>, Fault> {
    let mut update = batch.statement(
        "UPDATE replay SET version = version + 1, cursor = ?3, excluded = ?4, pipelines = ?5
         WHERE uuid = ?1 AND version = ?2 AND state = 'preparing' RETURNING id, total, version",
    )?;
    let (excluded, pipelines) = (serde_json::to_string(&params.excluded)?, serde_json::to_string(&params.pipelines)?);
    let mut rows = update.query(params![params.id.as_bytes(), params.was, params.cursor, excluded, pipelines])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (replay, total, version): (i64, i64, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    drop(rows);
    let mut insert = batch.statement(
        "INSERT OR IGNORE INTO replay_letter (replay, n, job, pipeline, cause_key, state, saved)
         SELECT ?1, ?2, id, pipeline, cause_key, 'pending', ?4 FROM dead WHERE id = ?3",
    )?;
    let (mut claimed, mut from_saved) = (0, 0);
    for (job, saved) in &params.letters {
        let inserted = insert.execute(params![replay, total + claimed + 1, job.as_bytes(), saved])?;
        claimed += i64::from(inserted == 1);
        from_saved += i64::from(inserted == 1 && *saved);
    }
    batch
        .statement("UPDATE replay SET total = total + ?2, pending = pending + ?2, saved = saved + ?3 WHERE id = ?1")?
        .execute([replay, claimed, from_saved])?;
    let claimed = u64::try_from(claimed).unwrap_or(0);
    Ok(Some(ClaimedLetters { version, claimed, refused: params.letters.len() as u64 - claimed }))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::steps::counted;
    use super::*;
    use crate::contract::{DeadFilter, Selection};
    use redrive_core::failures::Reason;
    use redrive_core::ids::JobId;

    /// A store with so many letters of one cause with three keys.
    pub fn filled(letters: u32) -> Connection {
        let mut conn = Connection::open_in_memory().expect("opened");
        super::super::schema::migrate(&mut conn, std::path::Path::new("memory:")).expect("made");
        conn.execute_batch(&format!(
            "INSERT INTO pipeline (id, name) VALUES (1, 'p');
             INSERT INTO cause (id, name, pipeline) VALUES (1, 'c1', 1);
             INSERT INTO cause_key (id, key, cause, origin, template, reason, parts, sample, first_seen, last_seen)
             VALUES (1, 'k', 1, 1, 'x', 'timeout', '[]', 'x', 0, 0), (2, 'l', 1, 1, 'x', 'timeout', '[]', 'x', 0, 0),
                    (3, 'm', 1, 1, 'x', 'timeout', '[]', 'x', 0, 0);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {letters})
             INSERT INTO dead (id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message,
                               input, cause_key)
             SELECT randomblob(16), 1, 0, abs(random()) % 1000, 0, 1, 0, 0, 'auto', 'timeout', 'x', '{{}}', 1 + i % 3 FROM n;"
        ))
        .expect("filled");
        conn
    }

    /// One letter is not looked for among all that died of its reason.
    #[test]
    fn a_plan_of_one_letter_costs_the_same_however_many_there_are() {
        let cost = |letters: u32| {
            let mut conn = filled(letters);
            let id: [u8; 16] = conn.query_row("SELECT id FROM dead LIMIT 1", [], |row| row.get(0)).expect("a letter");
            let params = SurveyLetters {
                selection: Selection { filter: DeadFilter::default(), ids: vec![JobId::from_bytes(id)] },
                closely: vec![Reason::Timeout],
                tried: None,
                host: "here".into(),
                automatic: false,
                lacking: true,
            };
            let (found, cost) = counted(&mut conn, |conn| survey(conn, &params).expect("counted"));
            assert_eq!(found.iter().map(|(_, letters)| letters).sum::<u64>(), 1);
            cost
        };
        assert_eq!(cost(100), cost(10_000));
    }

    /// The expression is that of the indexes, word for word: else each letter would be read.
    #[test]
    fn letters_whose_pages_matter_are_counted_by_indexes_alone() {
        let conn = filled(10);
        for filter in ["d.reason = 'timeout'", "d.pipeline = 1", "d.cause_key = 1"] {
            let sql = format!(
                "EXPLAIN QUERY PLAN SELECT d.pipeline, d.reason, d.gate, {PAYLOAD} FROM dead d WHERE {filter} AND d.died_at < 9"
            );
            let plan: String = conn.query_row(&sql, [], |row| row.get(3)).expect("explained");
            assert!(plan.contains("USING COVERING INDEX"), "{filter}: {plan}");
        }
    }

    /// A page costs the same wherever it is and however many letters there are: paging through is not quadratic.
    #[test]
    fn every_page_of_letters_costs_the_same() {
        let cause = DeadFilter { cause: Some("c1".parse().expect("an id")), ..DeadFilter::default() };
        let pipeline = DeadFilter { pipeline: Some("p".parse().expect("a name")), ..DeadFilter::default() };
        let reason = DeadFilter { reason: Some(Reason::Timeout), ..DeadFilter::default() };
        let mut conn = filled(10_000);
        for filter in [cause, pipeline, reason] {
            let selection = Selection { filter, ids: Vec::new() };
            let mut costs = Vec::new();
            let (mut cursor, mut letters) = (None, 0);
            loop {
                let params = FindLetters {
                    selection: selection.clone(),
                    opened: None,
                    tried: None,
                    host: "here".into(),
                    whole: false,
                    limit: 500,
                    cursor,
                };
                let (page, cost) = counted(&mut conn, |conn| find(conn, &params).expect("found"));
                costs.push(cost);
                letters += page.items.len();
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!((letters, costs.len()), (10_000, 20));
            let (least, most) = (costs[..19].iter().min().expect("pages"), costs.iter().max().expect("pages"));
            assert!(most < &(least * 2), "{costs:?}");
        }
    }
}
