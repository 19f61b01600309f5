//! Which dead letters a replay takes and which not, as one condition that planning and claiming share.

use redrive_core::replays::{Exclusion, ReplayMode};
use rusqlite::{Connection, params_from_iter};

use super::conditions::Conditions;
use super::dead;
use super::fault::Fault;
use super::rows;
use crate::contract::{PlanReplay, ReplayPlan};

/// The letters that were asked for, and what is to be left out of them.
pub(super) struct Choice {
    conditions: Conditions,
    /// Gives the name of the exclusion, or nothing.
    exclusion: String,
}

impl Choice {
    pub(super) fn of(conn: &Connection, params: &PlanReplay) -> Result<Self, Fault> {
        let mut filter = params.selection.filter.clone();
        // Whatever dies from now on is not meant.
        filter.until = Some(filter.until.unwrap_or(params.now + std::time::Duration::from_millis(1)));
        let mut conditions = dead::conditions(conn, &filter, None)?;
        conditions.ids("d.id", &params.selection.ids)?;
        Ok(Self { conditions, exclusion: exclusion(params) })
    }

    /// Claims so many letters, oldest first; says how many there were.
    pub(super) fn claim(&self, conn: &Connection, replay: i64, limit: u64) -> Result<u64, Fault> {
        let Self { conditions, exclusion } = self;
        let sql = format!(
            "INSERT INTO replay_letter (replay, n, job, pipeline, cause_key, state)
             SELECT {replay}, row_number() OVER (ORDER BY d.died_at, d.seq), d.id, d.pipeline, d.cause_key, 'pending'
             FROM dead d {conditions} AND ({exclusion}) IS NULL ORDER BY d.died_at, d.seq LIMIT {limit}"
        );
        let claimed = conn.prepare(&sql)?.execute(conditions.values())?;
        Ok(u64::try_from(claimed).unwrap_or(0))
    }
}

/// Says why a letter is left out, first reason first.
fn exclusion(params: &PlanReplay) -> String {
    let mut cases = String::new();
    let mut when = |exclusion: Exclusion, condition: &str| {
        cases += &format!(" WHEN {condition} THEN '{}'", exclusion.as_str());
    };
    when(Exclusion::BeingReplayed, "EXISTS (SELECT 1 FROM replay_letter r WHERE r.job = d.id AND r.claimed = 1)");
    if !params.force {
        when(Exclusion::GateNever, "d.gate = 'never'");
    }
    if params.mode == ReplayMode::Saved {
        let gone = "d.payload IS NULL OR NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = d.payload)";
        when(Exclusion::PayloadGone, gone);
        when(Exclusion::PayloadCut, "d.payload_cut");
    }
    if let Some(limits) = params.automatic {
        when(Exclusion::GateReview, "d.gate <> 'auto'");
        when(Exclusion::ReplayedEnough, &format!("d.auto_replays >= {}", limits.times_max));
        let open = "EXISTS (SELECT 1 FROM breaker b WHERE b.pipeline = d.pipeline AND b.target = d.target
                            AND b.breaker ->> 'state' <> 'closed')";
        when(Exclusion::BreakerOpen, open);
    }
    format!("CASE{cases} END")
}

pub(super) fn plan(conn: &Connection, params: &PlanReplay) -> Result<ReplayPlan, Fault> {
    let Choice { conditions, exclusion } = Choice::of(conn, params)?;
    let sql = format!(
        "SELECT ({exclusion}) AS exclusion, d.pipeline, d.gate, d.payload IS NOT NULL AND NOT d.payload_cut AS saved,
                count(*)
         FROM dead d {conditions} GROUP BY 1, 2, 3, 4"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let mut rows = select.query(conditions.values())?;
    let mut plan = ReplayPlan::default();
    while let Some(row) = rows.next()? {
        let count: u64 = row.get(4)?;
        plan.matched += count;
        if let Some(exclusion) = rows::parsed_opt::<Exclusion>(row, 0)? {
            *plan.excluded.entry(exclusion).or_default() += count;
            continue;
        }
        plan.included += count;
        plan.with_payload += if row.get(3)? { count } else { 0 };
        *plan.gates.entry(row.get(2)?).or_default() += count;
        let pipeline = pipeline_name(conn, row.get(1)?)?;
        *plan.pipelines.entry(pipeline).or_default() += count;
    }
    Ok(plan)
}

fn pipeline_name(conn: &Connection, pipeline: i64) -> Result<redrive_core::ids::PipelineName, Fault> {
    let mut select = conn.prepare_cached("SELECT name FROM pipeline WHERE id = ?1")?;
    Ok(select.query_row(params_from_iter([pipeline]), |row| rows::parsed(row, 0))?)
}
