//! Activity: a row for each thing that a person did, in the transaction that does it.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::JobId;
use redrive_core::time::Timestamp;
use rusqlite::{Connection, params};
use serde_json::Value;

use super::SqliteStore;
use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{ActivityStore, ActivityView, ListActivity, Page};
use crate::error::Result;
use crate::lists;

#[async_trait]
impl ActivityStore for SqliteStore {
    async fn list_activity(&self, params: ListActivity) -> Result<Page<ActivityView>> {
        self.read(move |conn| list(conn, &params)).await
    }
}

/// Notes what was done, if the record has that. Where it concerns pipelines, the detail names them in `pipelines`.
pub(super) fn note(
    batch: &Batch<'_>,
    by: &Actor,
    (verb, object): (&str, &str),
    detail: &Value,
    now: Timestamp,
) -> Result<(), Fault> {
    if !by.is_recorded(verb, object) {
        return Ok(());
    }
    batch
        .statement("INSERT INTO activity (at, who, via, verb, object, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![now.as_millis(), by.name, by.via.as_str(), verb, object, detail.to_string()])?;
    Ok(())
}

/// The pipelines of jobs that were just discarded.
pub(super) fn pipelines_of(batch: &Batch<'_>, discarded: &[JobId]) -> Result<Vec<String>, Fault> {
    let mut conditions = Conditions::default();
    conditions.ids("d.job", discarded)?;
    let sql =
        format!("SELECT DISTINCT p.name FROM discarded d JOIN pipeline p ON p.id = d.pipeline {conditions} ORDER BY 1");
    let mut select = batch.statement(&sql)?;
    let names = select.query_map(conditions.values(), |row| row.get(0))?;
    Ok(names.collect::<RowResult<_>>()?)
}

fn list(conn: &Connection, params: &ListActivity) -> Result<Page<ActivityView>, Fault> {
    let mut conditions = Conditions::default();
    if let Some(cursor) = &params.cursor {
        conditions.less_than_pair(("at", "id"), lists::keyset(cursor)?);
    }
    conditions.equal("who", params.who.clone());
    conditions.equal("verb", params.verb.clone());
    conditions.contains(&["object"], params.object.as_deref());
    conditions.at_least("at", params.since.map(Timestamp::as_millis));
    if let Some(pipeline) = &params.pipeline {
        let name = conditions.bind(pipeline.as_str().to_owned());
        conditions.holds(&format!("EXISTS (SELECT 1 FROM json_each(detail, '$.pipelines') WHERE value = {name})"));
    }
    let limit = params.limit.saturating_add(1);
    let sql = format!(
        "SELECT id, at, who, via, verb, object, detail FROM activity {conditions} ORDER BY at DESC, id DESC LIMIT {limit}"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(conditions.values(), |row| Ok((row.get::<_, i64>(0)?, rows::activity_view(row)?)))?;
    let found = rows.collect::<RowResult<Vec<_>>>()?;
    let page = Page::cut(found, params.limit, |(id, view)| format!("{}-{id}", view.at.as_millis()));
    Ok(Page { items: page.items.into_iter().map(|(_, view)| view).collect(), next: page.next })
}
