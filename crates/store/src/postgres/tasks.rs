//! Tasks before they are jobs: who has their keys.

use async_trait::async_trait;
use redrive_core::ids::{JobId, PipelineName};

use super::enqueuing::{Key, owners, places_of};
use super::fault::Fault;
use super::sql::{Conn, args, storable};
use super::{PostgresStore, rows, run};
use crate::contract::{FindTasks, KnownTask, TaskStore};
use crate::error::Result;

#[async_trait]
impl TaskStore for PostgresStore {
    async fn known_tasks(&self, params: FindTasks) -> Result<Vec<Option<KnownTask>>> {
        self.read(params, run!(known)).await
    }

    async fn task_files(&self, pipeline: PipelineName) -> Result<Vec<String>> {
        self.read(pipeline, run!(files)).await
    }
}

async fn files(conn: &Conn, pipeline: &PipelineName) -> Result<Vec<String>, Fault> {
    // The colon stands between hash and line; the semicolon is the character behind it.
    let sql = "SELECT f.hash FROM pipeline p JOIN task_file f ON f.pipeline = p.id
               WHERE p.name = $1 AND EXISTS (SELECT 1 FROM identity i WHERE i.pipeline = p.id AND i.round = ''
                                             AND i.key > f.hash || ':' AND i.key < f.hash || ';')";
    conn.query(sql, args![pipeline.as_str()], |row| row.get(0)).await
}

async fn known(conn: &Conn, params: &FindTasks) -> Result<Vec<Option<KnownTask>>, Fault> {
    let sql = "SELECT id FROM pipeline WHERE name = $1";
    let pipeline: Option<i64> = conn.query_opt(sql, args![params.pipeline.as_str()], |row| row.get(0)).await?;
    let Some(pipeline) = pipeline else { return Ok(vec![None; params.keys.len()]) };
    let round = rows::round_text(params.round.as_ref());
    let keys: Vec<Key> = params.keys.iter().map(|key| (storable(key), round.to_owned())).collect();
    let owners = owners(conn, pipeline, &keys).await?;
    let ids: Vec<JobId> = owners.values().map(|(id, _)| *id).collect();
    let places = places_of(conn, &ids).await?;
    let task = |key: &Key| {
        let (id, _) = *owners.get(key)?;
        places.get(&id).map(|(state, ended_at)| KnownTask { id, state: *state, ended_at: *ended_at })
    };
    Ok(keys.iter().map(task).collect())
}
