//! Definitions of pipelines, by version.

use async_trait::async_trait;
use redrive_core::definitions::{Definition, DefinitionVersion};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::conditions::Conditions;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{PostgresStore, dead, rows, run};
use crate::contract::{DefinitionStore, DefinitionView, NoteDefinitions, Selection};
use crate::error::Result;

#[async_trait]
impl DefinitionStore for PostgresStore {
    async fn note_definitions(&self, params: NoteDefinitions) -> Result<()> {
        self.write(params, run!(note_all)).await
    }

    async fn list_definitions(&self, pipeline: Option<PipelineName>) -> Result<Vec<DefinitionView>> {
        self.read(pipeline, run!(list)).await
    }

    async fn list_tried_versions(&self, letters: Selection) -> Result<Vec<Option<DefinitionVersion>>> {
        self.read(letters, run!(tried_versions)).await
    }
}

async fn list(conn: &Conn, pipeline: &Option<PipelineName>) -> Result<Vec<DefinitionView>, Fault> {
    let mut conditions = Conditions::default();
    conditions.equal("d.pipeline", pipeline.as_ref().map(PipelineName::as_str));
    let sql = format!(
        "SELECT d.pipeline, d.version, d.first_seen, d.last_seen, d.text,
                (SELECT '[' || string_agg(k.command, ',' ORDER BY k.command) || ']' FROM kept_command k
                 WHERE k.pipeline = d.pipeline AND k.version = d.version), d.results
         FROM definition d {conditions}
         ORDER BY d.last_seen DESC, d.first_seen DESC, d.pipeline, d.version"
    );
    let views = conn.query(&sql, conditions.values(), |row| {
        Ok(DefinitionView {
            pipeline: rows::parsed(row, 0)?,
            version: DefinitionVersion::new(row.get::<String>(1)?),
            first_seen: rows::time(row, 2)?,
            last_seen: rows::time(row, 3)?,
            text: row.get(4)?,
            commands: rows::json_opt(row, 5)?.unwrap_or_default(),
            results: rows::json_opt(row, 6)?,
        })
    });
    views.await
}

async fn tried_versions(conn: &Conn, letters: &Selection) -> Result<Vec<Option<DefinitionVersion>>, Fault> {
    let mut conditions = dead::conditions(conn, &letters.filter).await?;
    conditions.ids("d.id", &letters.ids);
    let sql = format!("SELECT DISTINCT d.definition FROM dead d {conditions} ORDER BY 1 NULLS FIRST");
    let versions =
        conn.query(&sql, conditions.values(), |row| Ok(row.get::<Option<String>>(0)?.map(DefinitionVersion::new)));
    versions.await
}

async fn note_all(batch: &mut Batch, params: &NoteDefinitions) -> Result<(), Fault> {
    note(batch, &params.definitions, params.now).await
}

/// Notes what the pipelines of a worker are.
pub(super) async fn note(
    batch: &Batch,
    definitions: &[(PipelineName, Definition)],
    now: Timestamp,
) -> Result<(), Fault> {
    for (pipeline, definition) in definitions {
        let (name, version) = (pipeline.as_str(), definition.version.as_str());
        let sql = "INSERT INTO definition (pipeline, version, first_seen, last_seen, text, results)
                   VALUES ($1, $2, $3, $3, $4, $5)
                   ON CONFLICT (pipeline, version)
                      DO UPDATE SET last_seen = greatest(definition.last_seen, excluded.last_seen), text = excluded.text,
                         results = coalesce(excluded.results, definition.results)";
        let results = definition.results.as_ref().map(serde_json::to_string).transpose()?;
        batch.conn().execute(sql, args![name, version, now, definition.text, results]).await?;
        if let Some(command) = &definition.command {
            let sql =
                "INSERT INTO kept_command (pipeline, version, command) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
            batch.conn().execute(sql, args![name, version, serde_json::to_string(command)?]).await?;
        }
    }
    Ok(())
}
