//! Causes.

use redrive_core::causes::{CauseRule, CauseState, Likeness, Standing, Trend};
use redrive_core::facets;

use super::{Columns, json_opt, parsed, time, time_opt};
use crate::contract::CauseView;

/// A cause without its trend and its targets, which are asked for only if it is shown.
pub(crate) struct Found {
    pub(crate) row: i64,
    pub(crate) standing: Standing,
    pub(crate) view: CauseView,
}

pub(crate) fn cause_rule<R: Columns>(row: &R) -> Result<CauseRule, R::Fault> {
    let like = match row.get::<Option<String>>(1)? {
        Some(target) => Likeness::Target(target),
        None => Likeness::Text(row.get(2)?),
    };
    Ok(CauseRule { key: row.get(0)?, like, into: row.get(3)? })
}

pub(crate) fn found_cause<R: Columns>(row: &R) -> Result<Found, R::Fault> {
    let last_seen = time(row, 11)?;
    let standing = Standing { resolved_at: time_opt(row, 13)?, last_seen, mute: json_opt(row, 14)? };
    let view = CauseView {
        id: parsed(row, 1)?,
        state: CauseState::New,
        pipeline: parsed(row, 2)?,
        reason: parsed(row, 3)?,
        code: row.get(4)?,
        http_status: row.get(15)?,
        title: row.get(5)?,
        dead: row.get(6)?,
        saved: row.get(17)?,
        total: row.get(7)?,
        refailed: row.get(16)?,
        recovered: row.get(8)?,
        discarded: row.get(9)?,
        trend: Trend::default(),
        targets: Vec::new(),
        targets_count: 0,
        example: None,
        first_seen: time(row, 10)?,
        last_seen,
        owner: row.get(12)?,
    };
    Ok(Found { row: row.get(0)?, standing, view })
}

/// What is counted of those who died that a letter still says: columns of its target, proxy, status and definition.
pub(crate) fn letter_facets<R: Columns>(row: &R, columns: [usize; 4]) -> Result<[(&'static str, String); 4], R::Fault> {
    let [target, proxy, status, rules] = columns;
    let text = |column: usize| Ok(facets::value(&row.get::<Option<String>>(column)?.unwrap_or_default()));
    let status = row.get::<Option<u16>>(status)?.map(|status| status.to_string());
    Ok([
        (facets::kinds::TARGET, text(target)?),
        (facets::kinds::PROXY, text(proxy)?),
        (facets::kinds::STATUS, status.unwrap_or_default()),
        (facets::kinds::RULES, text(rules)?),
    ])
}
