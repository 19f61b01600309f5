//! Causes: the verbs of the contract, and finding one by the beginning of its id.

use async_trait::async_trait;
use redrive_core::causes::{CauseFacts, CauseId, CauseRules};
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::SqliteStore;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{cause_changes, cause_keys, cause_rules, cause_views};
use crate::contract::{
    BusiestCauses, CauseChanged, CauseDetail, CauseHour, CauseStore, CauseView, ChangeCause, FindCause, ListCauses,
    ResolveLetters, Topic, Unresolved,
};
use crate::error::{Result, StoreError};

#[async_trait]
impl CauseStore for SqliteStore {
    async fn list_causes(&self, params: ListCauses) -> Result<Vec<CauseView>> {
        self.read(move |conn| cause_views::list(conn, &params)).await
    }

    async fn get_cause(&self, id: CauseId, now: Timestamp) -> Result<CauseDetail> {
        self.read(move |conn| cause_views::get(conn, &id, now)).await
    }

    async fn recognise(&self, keys: Vec<String>) -> Result<Vec<Option<CauseId>>> {
        self.read(move |conn| keys.iter().map(|key| cause_keys::cause_of(conn, key)).collect()).await
    }

    async fn cause_rules(&self) -> Result<CauseRules> {
        self.read(cause_rules::all).await
    }

    async fn unresolved_letters(&self, limit: u32) -> Result<Option<Unresolved>> {
        self.read(move |conn| cause_rules::unresolved(conn, limit)).await
    }

    async fn resolve_letters(&self, params: ResolveLetters) -> Result<bool> {
        self.write_about(Topic::Causes, move |batch| cause_rules::resolve(batch, &params)).await
    }

    async fn busiest_causes(&self, params: BusiestCauses) -> Result<Vec<CauseId>> {
        self.read(move |conn| {
            let mut conditions = Conditions::default();
            conditions.at_least("h.hour", Some(params.since.hour()));
            let sql = format!(
                "SELECT c.name FROM (SELECT h.key, sum(h.count - h.imported) AS count FROM cause_hour h INDEXED BY cause_hour_by_hour {conditions} GROUP BY h.key) s
                 JOIN cause_key k ON k.id = s.key JOIN cause c ON c.id = k.cause JOIN pipeline p ON p.id = c.pipeline
                 WHERE s.count > 0 AND (?2 IS NULL OR p.name = ?2) GROUP BY c.id ORDER BY sum(s.count) DESC, c.id DESC LIMIT {}",
                params.limit
            );
            let mut select = conn.prepare_cached(&sql)?;
            let name = params.pipeline.as_ref().map(PipelineName::as_str);
            let rows = select.query_map(params![params.since.hour(), name], |row| rows::parsed(row, 0))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn cause_hours(&self, ids: Vec<CauseId>, since: Timestamp) -> Result<Vec<CauseHour>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached(
                "SELECT c.name, h.hour * 3600000, sum(h.count), sum(h.imported) FROM json_each(?1) j JOIN cause c ON c.name = j.value
                 JOIN cause_key k ON k.cause = c.id JOIN cause_hour h ON h.key = k.id WHERE h.hour >= ?2
                 GROUP BY c.id, h.hour",
            )?;
            let rows = select.query_map(params![serde_json::to_string(&ids)?, since.hour()], |row| {
                let (cause, hour) = (rows::parsed(row, 0)?, rows::time(row, 1)?);
                Ok(CauseHour { cause, hour, count: row.get(2)?, imported: row.get(3)? })
            })?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn cause_facts(&self, params: FindCause) -> Result<CauseFacts> {
        self.read(move |conn| cause_changes::facts(conn, &params)).await
    }

    async fn change_cause(&self, params: ChangeCause) -> Result<CauseChanged> {
        self.write_about(Topic::Causes, move |batch| cause_changes::change(batch, &params)).await
    }

    async fn recovered_causes(&self, replay: ReplayId) -> Result<Vec<CauseId>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached(
                "SELECT DISTINCT c.name FROM (SELECT DISTINCT l.cause_key FROM replay r JOIN replay_letter l ON l.replay = r.id
                                              WHERE r.uuid = ?1 AND l.state = 'recovered') l
                 JOIN cause_key k ON k.id = l.cause_key JOIN cause c ON c.id = k.cause",
            )?;
            let rows = select.query_map([replay.as_bytes()], |row| rows::parsed(row, 0))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }
}

/// The row and the full id of a cause, by the beginning of its id. One that became part of another is found as that one.
pub(super) fn find(conn: &Connection, id: &CauseId) -> Result<(i64, CauseId), Fault> {
    let mut select = conn.prepare_cached(
        "SELECT id, name, merged_into FROM cause WHERE name >= ?1 AND name < ?1 || 'g' ORDER BY merged_into LIMIT 3",
    )?;
    let rows = select.query_map([id.as_str()], |row| Ok((row.get(0)?, rows::parsed(row, 1)?, row.get(2)?)))?;
    let mut found = rows.collect::<RowResult<Vec<(i64, CauseId, Option<i64>)>>>()?;
    let (mut row, mut name, mut merged) =
        match found.iter().position(|(_, name, _)| name == id).or((found.len() == 1).then_some(0)) {
            Some(at) => found.swap_remove(at),
            None if found.is_empty() => return Err(StoreError::NoCause(id.to_string()).into()),
            None => return Err(StoreError::AmbiguousCause(id.to_string()).into()),
        };
    while let Some(into) = merged {
        let mut select = conn.prepare_cached("SELECT id, name, merged_into FROM cause WHERE id = ?1")?;
        (row, name, merged) = select.query_row([into], |row| Ok((row.get(0)?, rows::parsed(row, 1)?, row.get(2)?)))?;
    }
    Ok((row, name))
}
