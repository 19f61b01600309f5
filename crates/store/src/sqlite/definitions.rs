//! Definitions of pipelines, by version.

use async_trait::async_trait;
use redrive_core::definitions::{Definition, DefinitionVersion};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use rusqlite::params;

use super::SqliteStore;
use super::batch::Batch;
use super::conditions::Conditions;
use super::dead;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{DefinitionStore, DefinitionView, NoteDefinitions, Selection};
use crate::error::Result;

#[async_trait]
impl DefinitionStore for SqliteStore {
    async fn note_definitions(&self, params: NoteDefinitions) -> Result<()> {
        self.write(move |batch| note(batch, &params.definitions, params.now)).await
    }

    async fn list_definitions(&self, pipeline: Option<PipelineName>) -> Result<Vec<DefinitionView>> {
        self.read(move |conn| {
            let mut conditions = Conditions::default();
            conditions.equal("d.pipeline", pipeline.as_ref().map(|name| name.as_str().to_owned()));
            let sql = format!(
                "SELECT d.pipeline, d.version, d.first_seen, d.last_seen, d.text,
                        (SELECT json_group_array(json(k.command)) FROM kept_command k
                         WHERE k.pipeline = d.pipeline AND k.version = d.version), d.results
                 FROM definition d {conditions}
                 ORDER BY d.last_seen DESC, d.first_seen DESC, d.pipeline, d.version"
            );
            let mut select = conn.prepare_cached(&sql)?;
            let rows = select.query_map(conditions.values(), |row| {
                Ok(DefinitionView {
                    pipeline: rows::parsed(row, 0)?,
                    version: DefinitionVersion::new(row.get::<_, String>(1)?),
                    first_seen: rows::time(row, 2)?,
                    last_seen: rows::time(row, 3)?,
                    text: row.get(4)?,
                    commands: rows::json_opt(row, 5)?.unwrap_or_default(),
                    results: rows::json_opt(row, 6)?,
                })
            })?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn list_tried_versions(&self, letters: Selection) -> Result<Vec<Option<DefinitionVersion>>> {
        self.read(move |conn| {
            let mut conditions = dead::conditions(conn, &letters.filter)?;
            conditions.ids("d.id", &letters.ids)?;
            let mut select =
                conn.prepare_cached(&format!("SELECT DISTINCT d.definition FROM dead d {conditions} ORDER BY 1"))?;
            let version = |row: &rusqlite::Row<'_>| Ok(row.get::<_, Option<String>>(0)?.map(DefinitionVersion::new));
            let rows = select.query_map(conditions.values(), version)?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }
}

/// Notes what the pipelines of a worker are.
pub(super) fn note(batch: &Batch<'_>, definitions: &[(PipelineName, Definition)], now: Timestamp) -> Result<(), Fault> {
    let now = now.as_millis();
    let mut upsert = batch.statement(
        "INSERT INTO definition (pipeline, version, first_seen, last_seen, text, results) VALUES (?1, ?2, ?3, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET last_seen = max(last_seen, excluded.last_seen), text = excluded.text,
            results = coalesce(excluded.results, results)",
    )?;
    for (pipeline, definition) in definitions {
        let results = definition.results.as_ref().map(serde_json::to_string).transpose()?;
        upsert.execute(params![pipeline.as_str(), definition.version.as_str(), now, definition.text, results])?;
        if let Some(command) = &definition.command {
            batch
                .statement("INSERT OR IGNORE INTO kept_command (pipeline, version, command) VALUES (?1, ?2, ?3)")?
                .execute(params![pipeline.as_str(), definition.version.as_str(), serde_json::to_string(command)?])?;
        }
    }
    Ok(())
}
