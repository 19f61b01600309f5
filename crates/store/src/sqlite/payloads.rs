//! Payloads: their places in the vault, and who refers to them.

use async_trait::async_trait;
use redrive_core::ids::JobId;
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteStore;
use super::batch::Batch;
use super::fault::Fault;
use super::rows::{self, RowResult};
use crate::contract::{ListPayloads, Page, PayloadStore, PayloadView, RegisterPayload, SweepPayloads};
use crate::error::Result;

#[async_trait]
impl PayloadStore for SqliteStore {
    async fn touch_payload(&self, hash: PayloadHash, now: Timestamp) -> Result<Option<String>> {
        self.write(move |batch| touch(batch, hash, now)).await
    }

    async fn place_of_payload(&self, hash: PayloadHash) -> Result<Option<String>> {
        self.read(move |conn| place_of(conn, hash)).await
    }

    async fn register_payload(&self, params: RegisterPayload) -> Result<String> {
        self.write(move |batch| {
            batch
                .statement(
                    "INSERT OR IGNORE INTO payload (hash, place, size_bytes, stored_bytes, created_at, touched_at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
                )?
                .execute(params![
                    params.hash.as_bytes(),
                    params.place,
                    params.size_bytes,
                    params.stored_bytes,
                    params.now.as_millis()
                ])?;
            Ok(touch(batch, params.hash, params.now)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
        })
        .await
    }

    async fn list_payloads(&self, params: ListPayloads) -> Result<Page<PayloadView>> {
        self.read(move |conn| list(conn, &params)).await
    }

    async fn payloads_of(&self, job: JobId) -> Result<Vec<Payload>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached("SELECT payload FROM payload_use WHERE job = ?1 ORDER BY at DESC")?;
            let rows = select.query_map([job.as_bytes()], |row| rows::json(row, 0))?;
            Ok(rows.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn sweep_payloads(&self, params: SweepPayloads) -> Result<Vec<String>> {
        self.write(move |batch| sweep(batch, params)).await
    }

    async fn known_places(&self, places: Vec<String>) -> Result<Vec<bool>> {
        self.read(move |conn| {
            let mut select = conn.prepare_cached("SELECT 1 FROM payload WHERE place = ?1")?;
            Ok(places.iter().map(|place| select.exists([place])).collect::<RowResult<_>>()?)
        })
        .await
    }
}

fn touch(batch: &Batch<'_>, hash: PayloadHash, now: Timestamp) -> Result<Option<String>, Fault> {
    let mut update = batch.statement("UPDATE payload SET touched_at = max(touched_at, ?2) WHERE hash = ?1")?;
    update.execute(params![hash.as_bytes(), now.as_millis()])?;
    place_of(batch.connection(), hash)
}

pub(super) fn place_of(conn: &Connection, hash: PayloadHash) -> Result<Option<String>, Fault> {
    let mut select = conn.prepare_cached("SELECT place FROM payload WHERE hash = ?1")?;
    Ok(select.query_row([hash.as_bytes()], |row| row.get(0)).optional()?)
}

/// Notes that a job refers to a payload.
pub(super) fn refer(batch: &Batch<'_>, job: JobId, payload: &Payload, now: Timestamp) -> Result<(), Fault> {
    let mut upsert = batch.statement(
        "INSERT INTO payload_use (job, hash, at, payload) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET at = excluded.at, payload = excluded.payload",
    )?;
    let text = serde_json::to_string(payload)?;
    upsert.execute(params![job.as_bytes(), payload.hash.as_bytes(), now.as_millis(), text])?;
    Ok(())
}

/// Notes that a job refers to no payload any more.
pub(super) fn let_go(batch: &Batch<'_>, job: JobId) -> Result<(), Fault> {
    batch.statement("DELETE FROM payload_use WHERE job = ?1")?.execute([job.as_bytes()])?;
    Ok(())
}

fn sweep(batch: &Batch<'_>, params: SweepPayloads) -> Result<Vec<String>, Fault> {
    let mut select = batch.statement(
        "SELECT hash, place FROM payload p WHERE touched_at < ?1
         AND NOT EXISTS (SELECT 1 FROM payload_use u WHERE u.hash = p.hash) LIMIT ?2",
    )?;
    let found = select.query_map(params![params.before.as_millis(), params.limit], |row| {
        Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, String>(1)?))
    })?;
    let found = found.collect::<RowResult<Vec<_>>>()?;
    let mut delete = batch.statement("DELETE FROM payload WHERE hash = ?1")?;
    for (hash, _) in &found {
        delete.execute([hash])?;
    }
    Ok(found.into_iter().map(|(_, place)| place).collect())
}

fn list(conn: &Connection, params: &ListPayloads) -> Result<Page<PayloadView>, Fault> {
    let prefix = params.prefix.clone().unwrap_or_default().to_ascii_lowercase();
    let after = params.cursor.clone().unwrap_or_default();
    let mut select = conn.prepare_cached(
        "SELECT p.hash, p.place, p.size_bytes, p.stored_bytes, p.created_at,
                (SELECT count(*) FROM payload_use u WHERE u.hash = p.hash)
         FROM payload p WHERE p.hash >= ?1 AND p.hash > ?2 ORDER BY p.hash",
    )?;
    let rows = select.query_map(params![bytes_of(&prefix), bytes_of(&after)], view)?;
    let mut found = Vec::new();
    for view in rows {
        let view = view?;
        if !view.hash.to_string().starts_with(&prefix) || found.len() > params.limit as usize {
            break;
        }
        found.push(view);
    }
    Ok(Page::cut(found, params.limit, |view| view.hash.to_string()))
}

/// The bytes that whole pairs of hexadecimal digits are: a lower bound of every hash that begins with the digits.
fn bytes_of(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [one] => [*one, b'0'],
        pair => [pair[0], pair[1]],
    });
    let byte = |pair: [u8; 2]| u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok();
    pairs.map_while(byte).collect()
}

fn view(row: &Row<'_>) -> RowResult<PayloadView> {
    Ok(PayloadView {
        hash: PayloadHash::from_bytes(row.get(0)?),
        place: row.get(1)?,
        size_bytes: row.get(2)?,
        stored_bytes: row.get(3)?,
        created_at: rows::time(row, 4)?,
        uses: row.get(5)?,
    })
}
