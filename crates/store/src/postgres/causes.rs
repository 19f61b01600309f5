//! Causes: the verbs of the contract, and finding one by the beginning of its id.

use async_trait::async_trait;
use redrive_core::causes::{CauseFacts, CauseId, CauseRules};
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::time::Timestamp;

use super::fault::Fault;
use super::sql::{Conn, Row, args};
use super::{PostgresStore, cause_changes, cause_rules, cause_views, rows, run};
use crate::contract::{
    BusiestCauses, CauseChanged, CauseDetail, CauseHour, CauseStore, CauseView, ChangeCause, FindCause, ListCauses,
    ResolveLetters, Topic, Unresolved,
};
use crate::error::{Result, StoreError};

#[async_trait]
impl CauseStore for PostgresStore {
    async fn list_causes(&self, params: ListCauses) -> Result<Vec<CauseView>> {
        self.read(params, run!(cause_views::list)).await
    }

    async fn get_cause(&self, id: CauseId, now: Timestamp) -> Result<CauseDetail> {
        self.read((id, now), run!(cause_views::get)).await
    }

    async fn recognise(&self, keys: Vec<String>) -> Result<Vec<Option<CauseId>>> {
        self.read(keys, run!(recognise)).await
    }

    async fn cause_rules(&self) -> Result<CauseRules> {
        self.read((), |conn, (): &()| Box::pin(cause_rules::all(conn))).await
    }

    async fn unresolved_letters(&self, limit: u32) -> Result<Option<Unresolved>> {
        self.read(limit, run!(cause_rules::unresolved)).await
    }

    async fn resolve_letters(&self, params: ResolveLetters) -> Result<bool> {
        self.write_about(Topic::Causes, params, run!(cause_rules::resolve)).await
    }

    async fn busiest_causes(&self, params: BusiestCauses) -> Result<Vec<CauseId>> {
        self.read(params, run!(busiest)).await
    }

    async fn cause_hours(&self, ids: Vec<CauseId>, since: Timestamp) -> Result<Vec<CauseHour>> {
        self.read((ids, since), run!(hours)).await
    }

    async fn cause_facts(&self, params: FindCause) -> Result<CauseFacts> {
        self.read(params, run!(cause_changes::facts)).await
    }

    async fn change_cause(&self, params: ChangeCause) -> Result<CauseChanged> {
        self.write_about(Topic::Causes, params, run!(cause_changes::change)).await
    }

    async fn recovered_causes(&self, replay: ReplayId) -> Result<Vec<CauseId>> {
        self.read(replay, run!(recovered)).await
    }
}

async fn recognise(conn: &Conn, keys: &[String]) -> Result<Vec<Option<CauseId>>, Fault> {
    let sql =
        "SELECT c.name FROM unnest($1::text[]) WITH ORDINALITY AS u(key, n) LEFT JOIN cause_key k ON k.key = u.key
               LEFT JOIN cause c ON c.id = k.cause ORDER BY u.n";
    conn.query(sql, args![keys], |row| rows::parsed_opt(row, 0)).await
}

async fn busiest(conn: &Conn, params: &BusiestCauses) -> Result<Vec<CauseId>, Fault> {
    let sql =
        "SELECT c.name FROM (SELECT h.key, sum(h.count - h.imported) AS count FROM cause_hour h WHERE h.hour >= $1 GROUP BY h.key) s
               JOIN cause_key k ON k.id = s.key JOIN cause c ON c.id = k.cause JOIN pipeline p ON p.id = c.pipeline
               WHERE s.count > 0 AND ($2::text IS NULL OR p.name = $2) GROUP BY c.id ORDER BY sum(s.count) DESC, c.id DESC LIMIT $3";
    let name = params.pipeline.as_ref().map(PipelineName::as_str);
    conn.query(sql, args![params.since.hour(), name, params.limit], |row| rows::parsed(row, 0)).await
}

async fn hours(conn: &Conn, (ids, since): &(Vec<CauseId>, Timestamp)) -> Result<Vec<CauseHour>, Fault> {
    let names: Vec<&str> = ids.iter().map(CauseId::as_str).collect();
    let sql = "SELECT c.name, h.hour * 3600000, sum(h.count)::bigint, sum(h.imported)::bigint FROM cause c
               JOIN cause_key k ON k.cause = c.id JOIN cause_hour h ON h.key = k.id
               WHERE c.name = ANY($1) AND h.hour >= $2 GROUP BY c.id, h.hour ORDER BY c.id, h.hour";
    let hours = conn.query(sql, args![names, since.hour()], |row| {
        let (cause, hour) = (rows::parsed(row, 0)?, rows::time(row, 1)?);
        Ok(CauseHour { cause, hour, count: row.get(2)?, imported: row.get(3)? })
    });
    hours.await
}

async fn recovered(conn: &Conn, replay: &ReplayId) -> Result<Vec<CauseId>, Fault> {
    let sql =
        "SELECT DISTINCT c.name FROM (SELECT DISTINCT l.cause_key FROM replay r JOIN replay_letter l ON l.replay = r.id
                                            WHERE r.uuid = $1 AND l.state = 'recovered') l
               JOIN cause_key k ON k.id = l.cause_key JOIN cause c ON c.id = k.cause ORDER BY 1";
    conn.query(sql, args![replay], |row| rows::parsed(row, 0)).await
}

/// The row and the full id of a cause, by the beginning of its id. One that became part of another is found as that one.
pub(super) async fn find(conn: &Conn, id: &CauseId) -> Result<(i64, CauseId), Fault> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, rows::parsed(row, 1)?, row.get(2)?));
    let sql = "SELECT id, name, merged_into FROM cause WHERE name >= $1 AND name < $1 || 'g'
               ORDER BY merged_into NULLS FIRST LIMIT 3";
    let mut found: Vec<(i64, CauseId, Option<i64>)> = conn.query(sql, args![id.as_str()], read).await?;
    let (mut row, mut name, mut merged) =
        match found.iter().position(|(_, name, _)| name == id).or((found.len() == 1).then_some(0)) {
            Some(at) => found.swap_remove(at),
            None if found.is_empty() => return Err(StoreError::NoCause(id.to_string()).into()),
            None => return Err(StoreError::AmbiguousCause(id.to_string()).into()),
        };
    while let Some(into) = merged {
        let sql = "SELECT id, name, merged_into FROM cause WHERE id = $1";
        (row, name, merged) = conn.query_one(sql, args![into], read).await?;
    }
    Ok((row, name))
}
