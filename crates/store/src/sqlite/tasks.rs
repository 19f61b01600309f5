//! Tasks before they are jobs: who has their keys.

use async_trait::async_trait;
use redrive_core::ids::PipelineName;
use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Fault;
use super::rows::{self, RowResult};
use super::{SqliteStore, jobs};
use crate::contract::{FindTasks, KnownTask, TaskStore};
use crate::error::Result;

#[async_trait]
impl TaskStore for SqliteStore {
    async fn known_tasks(&self, params: FindTasks) -> Result<Vec<Option<KnownTask>>> {
        self.read(move |conn| known(conn, &params)).await
    }

    async fn task_files(&self, pipeline: PipelineName) -> Result<Vec<String>> {
        self.read(move |conn| {
            // The colon stands between hash and line; the semicolon is the character behind it.
            let mut select = conn.prepare_cached(
                "SELECT f.hash FROM pipeline p JOIN task_file f ON f.pipeline = p.id
                 WHERE p.name = ?1 AND EXISTS (SELECT 1 FROM identity i WHERE i.pipeline = p.id AND i.round = ''
                                               AND i.key > f.hash || ':' AND i.key < f.hash || ';')",
            )?;
            let rows = select.query_map([pipeline.as_str()], |row| row.get(0))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }
}

fn known(conn: &Connection, params: &FindTasks) -> Result<Vec<Option<KnownTask>>, Fault> {
    let mut select = conn.prepare_cached("SELECT id FROM pipeline WHERE name = ?1")?;
    let pipeline: Option<i64> = select.query_row([params.pipeline.as_str()], |row| row.get(0)).optional()?;
    let Some(pipeline) = pipeline else { return Ok(vec![None; params.keys.len()]) };
    let round = rows::round_text(params.round.as_ref());
    let mut select =
        conn.prepare_cached("SELECT job FROM identity WHERE pipeline = ?1 AND key = ?3 AND round = ifnull(?2, '')")?;
    let mut find = |key: &String| {
        let found = select.query_row(params![pipeline, round, key], |row| rows::job_id(row, 0)).optional()?;
        let Some(id) = found else { return Ok(None) };
        Ok(jobs::place_of(conn, id)?.map(|(state, ended_at)| KnownTask { id, state, ended_at }))
    };
    params.keys.iter().map(&mut find).collect()
}
