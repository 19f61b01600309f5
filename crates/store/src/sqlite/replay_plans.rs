//! Which dead letters a replay takes and which not, as one condition that planning and claiming share.

use redrive_core::dead::DeadLetter;
use redrive_core::replays::{Exclusion, ReplayMode};
use rusqlite::{Connection, params_from_iter};

use super::conditions::Conditions;
use super::dead;
use super::fault::Fault;
use super::rows::{self, DEAD_COLUMNS, RowResult};
use crate::contract::{ListChosen, Page, PlanReplay, ReplayPlan};

/// The letters that were asked for, and what is to be left out of them.
pub(super) struct Choice {
    conditions: Conditions,
    /// Gives the name of the exclusion, or nothing.
    exclusion: String,
    /// At most so many are claimed.
    limit: Option<u32>,
}

impl Choice {
    pub(super) fn of(conn: &Connection, params: &PlanReplay) -> Result<Self, Fault> {
        // Without an end all that are dead are meant, also those that died while the clock was ahead; whatever dies later is
        // not there when they are claimed.
        let mut conditions = dead::conditions(conn, &params.selection.filter, None)?;
        conditions.ids("d.id", &params.selection.ids)?;
        let limit = params.automatic.map(|limits| limits.letters_max);
        // Every value that is bound must be used.
        let host = match params.mode {
            ReplayMode::Saved => conditions.bind(params.host.clone()),
            ReplayMode::Refetch | ReplayMode::Resubmit => String::new(),
        };
        Ok(Self { exclusion: exclusion(params, any_claimed(conn)?, &host), conditions, limit })
    }

    /// Claims the letters, oldest first; says how many there were.
    pub(super) fn claim(&self, conn: &Connection, replay: i64) -> Result<u64, Fault> {
        let Self { conditions, exclusion, limit } = self;
        let limit = limit.map_or(-1, i64::from);
        let sql = format!(
            "INSERT INTO replay_letter (replay, n, job, pipeline, cause_key, state)
             SELECT {replay}, row_number() OVER (), id, pipeline, cause_key, 'pending' FROM
                (SELECT d.id, d.pipeline, d.cause_key FROM dead d {conditions} AND ({exclusion}) IS NULL
                 ORDER BY d.died_at, d.seq LIMIT {limit})"
        );
        let claimed = conn.prepare(&sql)?.execute(conditions.values())?;
        Ok(u64::try_from(claimed).unwrap_or(0))
    }
}

/// Says why a letter is left out, first reason first.
fn exclusion(params: &PlanReplay, any_claimed: bool, host: &str) -> String {
    let mut cases = String::new();
    let mut when = |exclusion: Exclusion, condition: &str| {
        cases += &format!(" WHEN {condition} THEN '{}'", exclusion.as_str());
    };
    if any_claimed {
        let claimed = "EXISTS (SELECT 1 FROM replay_letter r WHERE r.job = d.id AND r.claimed = 1)";
        when(Exclusion::BeingReplayed, claimed);
    }
    if !params.force {
        when(Exclusion::GateNever, "d.gate = 'never'");
    }
    if params.mode == ReplayMode::Saved {
        let gone = "d.payload IS NULL OR d.payload_cut = 2
                    OR NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = d.payload)";
        when(Exclusion::PayloadLost, "d.payload IS NULL AND d.payload_lost");
        when(Exclusion::PayloadGone, gone);
        let elsewhere = format!("EXISTS (SELECT 1 FROM payload p WHERE p.hash = d.payload AND p.spooled_on <> {host})");
        when(Exclusion::PayloadOnItsWay, &elsewhere);
        when(Exclusion::PayloadCut, "d.payload_cut");
    }
    if let Some(limits) = params.automatic {
        when(Exclusion::GateReview, "d.gate <> 'auto'");
        when(Exclusion::ReplayedEnough, &format!("d.auto_replays >= {}", limits.times_max));
        let open = "EXISTS (SELECT 1 FROM breaker b WHERE b.pipeline = d.pipeline AND b.target = d.target
                            AND b.breaker ->> 'state' <> 'closed')";
        when(Exclusion::BreakerOpen, open);
    }
    if cases.is_empty() { "NULL".to_owned() } else { format!("CASE{cases} END") }
}

/// Whether any replay has a letter at all: else none need be asked for.
fn any_claimed(conn: &Connection) -> Result<bool, Fault> {
    let sql = "SELECT 1 FROM replay_letter INDEXED BY replay_letter_claim WHERE claimed = 1 LIMIT 1";
    Ok(conn.prepare_cached(sql)?.exists([])?)
}

/// A page of the letters that would be sent, with their failures.
pub(super) fn list(conn: &Connection, params: &ListChosen) -> Result<Page<DeadLetter>, Fault> {
    let mut choice = Choice::of(conn, &params.plan)?;
    choice.conditions.less_than("d.seq", rows::row_cursor(params.cursor.as_deref())?);
    let Choice { conditions, exclusion, .. } = choice;
    let limit = params.limit.saturating_add(1);
    let sql = format!(
        "SELECT {DEAD_COLUMNS} FROM dead d JOIN pipeline p ON p.id = d.pipeline
         {conditions} AND ({exclusion}) IS NULL ORDER BY d.seq DESC LIMIT {limit}"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| Ok((row.get::<_, i64>(0)?, rows::dead_letter(row)?)))?;
    let page = Page::cut(rows.collect::<RowResult<Vec<_>>>()?, params.limit, |(seq, _)| seq.to_string());
    let whole =
        |(_, letter): (i64, DeadLetter)| Ok(DeadLetter { failures: Some(rows::failures(conn, letter.id)?), ..letter });
    Ok(Page { items: page.items.into_iter().map(whole).collect::<Result<_, Fault>>()?, next: page.next })
}

pub(super) fn plan(conn: &Connection, params: &PlanReplay) -> Result<ReplayPlan, Fault> {
    let Choice { conditions, exclusion, .. } = Choice::of(conn, params)?;
    let sql = format!(
        "SELECT ({exclusion}) AS exclusion, d.pipeline, d.gate, d.saved, d.reason, count(*)
         FROM dead d {conditions} GROUP BY 1, 2, 3, 4, 5"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(conditions.values())?;
    let mut plan = ReplayPlan::default();
    while let Some(row) = rows.next()? {
        let count: u64 = row.get(5)?;
        plan.matched += count;
        if let Some(exclusion) = rows::parsed_opt::<Exclusion>(row, 0)? {
            *plan.excluded.entry(exclusion).or_default() += count;
            continue;
        }
        plan.included += count;
        plan.with_payload += if row.get(3)? { count } else { 0 };
        *plan.gates.entry(row.get(2)?).or_default() += count;
        *plan.reasons.entry(rows::parsed(row, 4)?).or_default() += count;
        let pipeline = pipeline_name(conn, row.get(1)?)?;
        *plan.pipelines.entry(pipeline).or_default() += count;
    }
    Ok(plan)
}

fn pipeline_name(conn: &Connection, pipeline: i64) -> Result<redrive_core::ids::PipelineName, Fault> {
    let mut select = conn.prepare_cached("SELECT name FROM pipeline WHERE id = ?1")?;
    Ok(select.query_row(params_from_iter([pipeline]), |row| rows::parsed(row, 0))?)
}
