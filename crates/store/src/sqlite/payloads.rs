//! Payloads: their places in the vault, and who refers to them.

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::dead::KeptPayload;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace, PayloadReads, StoreId, Unreadable};
use redrive_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use serde_json::json;

use super::SqliteStore;
use super::activity;
use super::batch::Batch;
use super::fault::Fault;
use super::origin;
use super::rows::{self, RowResult};
use crate::contract::{
    CountPayloadReads, ListPayloads, Page, PayloadAt, PayloadStore, PayloadView, RegisterPayload, Registered, StoreIds,
    SweepPayloads, TouchPayload,
};
use crate::error::Result;
use crate::lists::bytes_of;

#[async_trait]
impl PayloadStore for SqliteStore {
    async fn touch_payload(&self, params: TouchPayload) -> Result<Option<PayloadAt>> {
        self.write(move |batch| touch(batch, params)).await
    }

    async fn place_of_payload(&self, hash: PayloadHash) -> Result<Option<PayloadAt>> {
        self.read(move |conn| place_of(conn, hash)).await
    }

    async fn note_spooled(&self, place: PayloadPlace, on: Option<String>) -> Result<bool> {
        self.write(move |batch| {
            let mut update = batch.statement("UPDATE payload SET spooled_on = ?2 WHERE place = ?1")?;
            Ok(update.execute(params![place.to_string(), on])? == 1)
        })
        .await
    }

    async fn note_readable(&self, place: PayloadPlace, unreadable: Option<Unreadable>) -> Result<()> {
        self.write(move |batch| {
            let text = unreadable.map(|unreadable| serde_json::to_string(&unreadable)).transpose()?;
            let sql =
                "UPDATE payload SET unreadable = ?2 WHERE place = ?1 AND unreadable ->> 'why' IS NOT ?2 ->> 'why'";
            batch.statement(sql)?.execute(params![place.to_string(), text])?;
            Ok(())
        })
        .await
    }

    async fn count_payload_reads(&self, params: CountPayloadReads) -> Result<()> {
        self.write(move |batch| {
            let CountPayloadReads { host, found, missing, now } = &params;
            batch
                .statement(
                    "INSERT INTO payload_reads (host, found, missing, since) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (host) DO UPDATE SET found = found + excluded.found, missing = missing + excluded.missing",
                )?
                .execute(params![host, found, missing, now.as_millis()])?;
            Ok(())
        })
        .await
    }

    async fn payload_reads(&self) -> Result<PayloadReads> {
        self.read(|conn| Ok(conn.prepare_cached(rows::PAYLOAD_READS)?.query_row([], |row| rows::payload_reads(row))?))
            .await
    }

    async fn register_payload(&self, params: RegisterPayload) -> Result<Registered> {
        self.write(move |batch| register(batch, &params)).await
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

    async fn jobs_with_payload(&self, hash: PayloadHash, limit: u32) -> Result<Vec<JobId>> {
        self.read(move |conn| {
            // The index has jobs in their order, which is that of time: any number of them may have the same payload.
            let sql = "SELECT job FROM payload_use WHERE hash = ?1 ORDER BY job DESC LIMIT ?2";
            let mut select = conn.prepare_cached(sql)?;
            let jobs = select.query_map(params![hash.as_bytes(), limit], |row| rows::job_id(row, 0))?;
            Ok(jobs.collect::<RowResult<_>>()?)
        })
        .await
    }

    async fn pipelines_with_payload(&self, hash: PayloadHash) -> Result<Vec<PipelineName>> {
        self.read(move |conn| pipelines_with(conn, hash)).await
    }

    async fn sweep_payloads(&self, params: SweepPayloads) -> Result<Vec<PayloadPlace>> {
        self.write(move |batch| {
            let swept = sweep(batch, &params)?;
            if !swept.is_empty() {
                activity::note(
                    batch,
                    &params.by,
                    ("sweep", "payloads"),
                    &json!({"payloads": swept.len()}),
                    params.now,
                )?;
            }
            Ok(swept)
        })
        .await
    }

    async fn known_places(&self, places: Vec<PayloadPlace>) -> Result<Vec<bool>> {
        self.read(move |conn| Ok(places.iter().map(|place| is_known(conn, place)).collect::<RowResult<_>>()?)).await
    }

    async fn condemn_places(&self, places: Vec<PayloadPlace>, now: Timestamp) -> Result<Vec<PayloadPlace>> {
        self.write(move |batch| condemn(batch, &places, now)).await
    }

    async fn store_ids(&self) -> Result<StoreIds> {
        self.read(origin::ids).await
    }

    async fn adopt_payloads(&self, by: Actor, now: Timestamp) -> Result<()> {
        self.write(move |batch| {
            origin::adopt(batch.connection())?;
            activity::note(batch, &by, ("adopt", "payloads"), &json!({}), now)
        })
        .await
    }
}

/// The pipelines whose jobs refer to a payload.
pub(super) fn pipelines_with(conn: &Connection, hash: PayloadHash) -> Result<Vec<PipelineName>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT name FROM pipeline WHERE id IN (SELECT d.pipeline FROM payload_use u JOIN dead d ON d.id = u.job WHERE u.hash = ?1
                                                UNION SELECT j.pipeline FROM payload_use u JOIN job j ON j.id = u.job WHERE u.hash = ?1)
         ORDER BY name",
    )?;
    Ok(select.query_map([hash.as_bytes()], |row| rows::parsed(row, 0))?.collect::<RowResult<_>>()?)
}

fn touch(batch: &Batch<'_>, params: TouchPayload) -> Result<Option<PayloadAt>, Fault> {
    let mut update = batch.statement(
        "UPDATE payload SET touched_at = max(touched_at, ?2), wanted_by = ifnull(?3, wanted_by) WHERE hash = ?1",
    )?;
    let wanted_by = params.wanted_by.as_ref().map(JobId::as_bytes);
    update.execute(params![params.hash.as_bytes(), params.now.as_millis(), wanted_by])?;
    place_of(batch.connection(), params.hash)
}

fn register(batch: &Batch<'_>, params: &RegisterPayload) -> Result<Registered, Fault> {
    let RegisterPayload { place, size_bytes, stored_bytes, wanted_by, now, .. } = *params;
    let (hash, text) = (place.hash, place.to_string());
    if batch.statement("SELECT 1 FROM condemned WHERE place = ?1")?.exists([&text])? {
        return Ok(Registered::Condemned);
    }
    let store = place.store.as_ref().map(StoreId::to_string).unwrap_or_default();
    if let Some(former) = params.instead_of {
        batch
            .statement(
                "UPDATE payload SET place = ?3, store = ?4, stored_bytes = ?5, spooled_on = ?6
                 WHERE hash = ?1 AND place = ?2",
            )?
            .execute(params![hash.as_bytes(), former.to_string(), text, store, stored_bytes, params.spooled_on])?;
    }
    batch
        .statement(
            "INSERT OR IGNORE INTO payload (hash, place, store, size_bytes, stored_bytes, created_at, touched_at, spooled_on)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
        )?
        .execute(params![hash.as_bytes(), text, store, size_bytes, stored_bytes, now.as_millis(), params.spooled_on])?;
    let counts = touch(batch, TouchPayload { hash, wanted_by, now })?;
    Ok(Registered::At(counts.ok_or(rusqlite::Error::QueryReturnedNoRows)?.place))
}

pub(super) fn place_of(conn: &Connection, hash: PayloadHash) -> Result<Option<PayloadAt>, Fault> {
    let mut select = conn.prepare_cached(&format!("SELECT {} FROM payload WHERE hash = ?1", rows::PAYLOAD_AT))?;
    Ok(select.query_row([hash.as_bytes()], |row| rows::payload_at(row)).optional()?)
}

fn is_known(conn: &Connection, place: &PayloadPlace) -> RowResult<bool> {
    conn.prepare_cached("SELECT 1 FROM payload WHERE place = ?1")?.exists([place.to_string()])
}

fn condemn(batch: &Batch<'_>, places: &[PayloadPlace], now: Timestamp) -> Result<Vec<PayloadPlace>, Fault> {
    let mut insert = batch.statement("INSERT OR IGNORE INTO condemned (place, at) VALUES (?1, ?2)")?;
    let mut condemned = Vec::new();
    for place in places {
        if !is_known(batch.connection(), place)? {
            insert.execute(params![place.to_string(), now.as_millis()])?;
            condemned.push(*place);
        }
    }
    Ok(condemned)
}

/// Notes that a job refers to a payload; says whether it is registered. If it is not, nothing is written.
pub(super) fn refer(batch: &Batch<'_>, job: JobId, payload: &Payload, now: Timestamp) -> Result<bool, Fault> {
    let mut upsert = batch.statement(
        "INSERT INTO payload_use (job, hash, at, payload)
         SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM payload WHERE hash = ?2)
         ON CONFLICT DO UPDATE SET at = excluded.at, payload = excluded.payload",
    )?;
    let text = serde_json::to_string(payload)?;
    Ok(upsert.execute(params![job.as_bytes(), payload.hash.as_bytes(), now.as_millis(), text])? == 1)
}

/// The newest payload that any attempt of a job brought.
pub(super) fn newest_of(conn: &Connection, job: JobId) -> Result<Option<KeptPayload>, Fault> {
    let mut select = conn.prepare_cached(
        "SELECT hash, ifnull(payload ->> 'truncated', 0) FROM payload_use WHERE job = ?1 ORDER BY at DESC LIMIT 1",
    )?;
    let kept = |row: &Row<'_>| Ok(KeptPayload { hash: PayloadHash::from_bytes(row.get(0)?), truncated: row.get(1)? });
    Ok(select.query_row([job.as_bytes()], kept).optional()?)
}

/// Notes that a job refers to no payload any more, or to no other than this one.
pub(super) fn let_go(batch: &mut Batch<'_>, job: JobId, except: Option<PayloadHash>) -> Result<(), Fault> {
    let delete = batch.hot("DELETE FROM payload_use WHERE job = ?1 AND hash IS NOT ?2")?;
    delete.execute(params![job.as_bytes(), except.as_ref().map(PayloadHash::as_bytes)])?;
    Ok(())
}

/// Notes that a job no longer refers to a payload that a failure of it brought, unless another failure did so too.
pub(super) fn let_go_of(batch: &Batch<'_>, job: JobId, hash: PayloadHash) -> Result<(), Fault> {
    let mut delete = batch.statement(
        "DELETE FROM payload_use WHERE job = ?1 AND hash = ?2 AND NOT EXISTS
            (SELECT 1 FROM failure f WHERE f.job = ?1 AND f.failure -> 'payload' ->> 'hash' = lower(hex(?2)))",
    )?;
    delete.execute(params![job.as_bytes(), hash.as_bytes()])?;
    Ok(())
}

fn sweep(batch: &Batch<'_>, params: &SweepPayloads) -> Result<Vec<PayloadPlace>, Fault> {
    let mut select = batch.statement(
        "SELECT hash, place FROM payload p WHERE touched_at < ?1
         AND NOT EXISTS (SELECT 1 FROM payload_use u WHERE u.hash = p.hash)
         AND NOT EXISTS (SELECT 1 FROM good g WHERE g.hash = p.hash)
         AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.job = p.wanted_by)
         AND NOT EXISTS (SELECT 1 FROM store_id s WHERE s.id = p.store AND s.state = 'inherited') LIMIT ?2",
    )?;
    let found = select.query_map(params![params.before.as_millis(), params.limit], |row| {
        Ok((row.get::<_, [u8; 32]>(0)?, rows::parsed::<PayloadPlace, _>(row, 1)?))
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
                (SELECT count(*) FROM payload_use u WHERE u.hash = p.hash) + (SELECT count(*) FROM good g WHERE g.hash = p.hash),
                p.spooled_on, p.unreadable
         FROM payload p WHERE p.hash >= ?1 AND p.hash > ?2 ORDER BY p.hash",
    )?;
    let rows = select.query_map(params![bytes_of(&prefix), bytes_of(&after)], |row| rows::payload_view(row))?;
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
