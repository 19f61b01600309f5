//! Activity: a row for each thing that a person did, in the transaction that does it.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::ids::JobId;
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, rows, run};
use crate::contract::{ActivityStore, ActivityView, ListActivity, Page};
use crate::error::Result;
use crate::lists;

#[async_trait]
impl ActivityStore for PostgresStore {
    async fn list_activity(&self, params: ListActivity) -> Result<Page<ActivityView>> {
        self.read(params, run!(list)).await
    }
}

/// Notes what was done, if the record has that. Where it concerns pipelines, the detail names them in `pipelines`.
pub(super) async fn note(
    batch: &Batch,
    by: &Actor,
    (verb, object): (&str, &str),
    detail: &Value,
    now: Timestamp,
) -> Result<(), Fault> {
    if !by.is_recorded(verb, object) {
        return Ok(());
    }
    let sql = "INSERT INTO activity (at, who, via, verb, object, detail) VALUES ($1, $2, $3, $4, $5, $6)";
    batch.conn().execute(sql, args![now, by.name, by.via.as_str(), verb, object, detail.to_string()]).await?;
    Ok(())
}

/// The pipelines of jobs that were just discarded.
pub(super) async fn pipelines_of(batch: &Batch, discarded: &[JobId]) -> Result<Vec<String>, Fault> {
    let sql =
        "SELECT DISTINCT p.name FROM discarded d JOIN pipeline p ON p.id = d.pipeline WHERE d.job = ANY($1) ORDER BY 1";
    batch.conn().query(sql, args![discarded], |row| row.get(0)).await
}

async fn list(conn: &Conn, params: &ListActivity) -> Result<Page<ActivityView>, Fault> {
    let mut conditions = Conditions::default();
    if let Some(cursor) = &params.cursor {
        conditions.less_than_pair(("at", "id"), lists::keyset(cursor)?);
    }
    conditions.equal("who", params.who.as_deref());
    conditions.equal("verb", params.verb.as_deref());
    conditions.contains(&["object"], params.object.as_deref());
    conditions.at_least("at", params.since);
    if let Some(pipeline) = &params.pipeline {
        let name = conditions.bind(pipeline.as_str());
        // As JSON, whose zero characters `jsonb` does not take.
        conditions.holds(&format!(
            "EXISTS (SELECT 1 FROM json_array_elements_text(coalesce(detail::json -> 'pipelines', '[]')) AS p(name)
                     WHERE p.name = {name})"
        ));
    }
    let limit = params.limit.saturating_add(1);
    let sql = format!(
        "SELECT id, at, who, via, verb, object, detail FROM activity {conditions} ORDER BY at DESC, id DESC LIMIT {limit}"
    );
    let found =
        conn.query(&sql, conditions.values(), |row| Ok((row.get::<i64>(0)?, rows::activity_view(row)?))).await?;
    let page = Page::cut(found, params.limit, |(id, view)| format!("{}-{id}", view.at.as_millis()));
    Ok(Page { items: page.items.into_iter().map(|(_, view)| view).collect(), next: page.next })
}
