//! Payloads: their places in the vault, and who refers to them.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::dead::KeptPayload;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace, PayloadReads, StoreId, Unreadable};
use redrive_core::time::Timestamp;
use serde_json::json;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Bytes, Conn, args};
use super::{PostgresStore, activity, rows, run};
use crate::contract::{
    CountPayloadReads, ListPayloads, Page, PayloadAt, PayloadStore, PayloadView, RegisterPayload, Registered, StoreIds,
    SweepPayloads, TouchPayload,
};
use crate::error::Result;
use crate::lists::bytes_of;

#[async_trait]
impl PayloadStore for PostgresStore {
    async fn touch_payload(&self, params: TouchPayload) -> Result<Option<PayloadAt>> {
        self.write(params, run!(touch)).await
    }

    async fn place_of_payload(&self, hash: PayloadHash) -> Result<Option<PayloadAt>> {
        self.read(hash, run!(place_of)).await
    }

    async fn note_spooled(&self, place: PayloadPlace, on: Option<String>) -> Result<bool> {
        self.write((place, on), run!(note_spooled)).await
    }

    async fn note_readable(&self, place: PayloadPlace, unreadable: Option<Unreadable>) -> Result<()> {
        self.write((place, unreadable), run!(note_readable)).await
    }

    async fn count_payload_reads(&self, params: CountPayloadReads) -> Result<()> {
        self.write(params, run!(count_reads)).await
    }

    async fn payload_reads(&self) -> Result<PayloadReads> {
        self.read((), run!(reads)).await
    }

    async fn register_payload(&self, params: RegisterPayload) -> Result<Registered> {
        self.write(params, run!(register)).await
    }

    async fn list_payloads(&self, params: ListPayloads) -> Result<Page<PayloadView>> {
        self.read(params, run!(list)).await
    }

    async fn payloads_of(&self, job: JobId) -> Result<Vec<Payload>> {
        self.read(job, run!(of)).await
    }

    async fn jobs_with_payload(&self, hash: PayloadHash, limit: u32) -> Result<Vec<JobId>> {
        self.read((hash, limit), run!(jobs_with)).await
    }

    async fn pipelines_with_payload(&self, hash: PayloadHash) -> Result<Vec<PipelineName>> {
        self.read(hash, run!(pipelines_with)).await
    }

    async fn sweep_payloads(&self, params: SweepPayloads) -> Result<Vec<PayloadPlace>> {
        self.write(params, run!(sweep)).await
    }

    async fn known_places(&self, places: Vec<PayloadPlace>) -> Result<Vec<bool>> {
        self.read(places, run!(known)).await
    }

    async fn condemn_places(&self, places: Vec<PayloadPlace>, now: Timestamp) -> Result<Vec<PayloadPlace>> {
        self.write((places, now), run!(condemn)).await
    }

    async fn store_ids(&self) -> Result<StoreIds> {
        self.read((), run!(ids)).await
    }

    async fn adopt_payloads(&self, by: Actor, now: Timestamp) -> Result<()> {
        self.write((by, now), run!(adopt)).await
    }
}

/// The pipelines whose jobs refer to a payload.
pub(super) async fn pipelines_with(conn: &Conn, hash: &PayloadHash) -> Result<Vec<PipelineName>, Fault> {
    let sql = "SELECT name FROM pipeline WHERE id IN (SELECT d.pipeline FROM payload_use u JOIN dead d ON d.id = u.job WHERE u.hash = $1
                                                      UNION SELECT j.pipeline FROM payload_use u JOIN job j ON j.id = u.job WHERE u.hash = $1)
               ORDER BY name";
    conn.query(sql, args![hash], |row| rows::parsed(row, 0)).await
}

async fn touch(batch: &mut Batch, params: &TouchPayload) -> Result<Option<PayloadAt>, Fault> {
    let sql = format!(
        "UPDATE payload SET touched_at = greatest(touched_at, $2), wanted_by = coalesce($3, wanted_by) WHERE hash = $1
         RETURNING {}",
        rows::PAYLOAD_AT
    );
    let touched = args![params.hash, params.now, params.wanted_by];
    batch.conn().query_opt(&sql, touched, |row| rows::payload_at(row)).await
}

async fn note_spooled(batch: &mut Batch, (place, on): &(PayloadPlace, Option<String>)) -> Result<bool, Fault> {
    let sql = "UPDATE payload SET spooled_on = $2 WHERE place = $1";
    Ok(batch.conn().execute(sql, args![place.to_string(), on]).await? == 1)
}

async fn note_readable(
    batch: &mut Batch,
    (place, unreadable): &(PayloadPlace, Option<Unreadable>),
) -> Result<(), Fault> {
    let text = unreadable.map(|unreadable| serde_json::to_string(&unreadable)).transpose()?;
    let sql = "UPDATE payload SET unreadable = $2
               WHERE place = $1 AND unreadable::json ->> 'why' IS DISTINCT FROM $2::text::json ->> 'why'";
    batch.conn().execute(sql, args![place.to_string(), text]).await.map(drop)
}

async fn count_reads(batch: &mut Batch, params: &CountPayloadReads) -> Result<(), Fault> {
    let sql = "INSERT INTO payload_reads AS r (host, found, missing, since) VALUES ($1, $2, $3, $4)
               ON CONFLICT (host) DO UPDATE SET found = r.found + excluded.found, missing = r.missing + excluded.missing";
    let CountPayloadReads { host, found, missing, now } = params;
    batch.conn().execute(sql, args![host, found, missing, now]).await.map(drop)
}

async fn reads(conn: &Conn, (): &()) -> Result<PayloadReads, Fault> {
    conn.query_one(rows::PAYLOAD_READS, args![], |row| rows::payload_reads(row)).await
}

async fn register(batch: &mut Batch, params: &RegisterPayload) -> Result<Registered, Fault> {
    let RegisterPayload { place, size_bytes, stored_bytes, wanted_by, now, .. } = *params;
    let (hash, text) = (place.hash, place.to_string());
    if batch.conn().exists("SELECT 1 FROM condemned WHERE place = $1", args![text]).await? {
        return Ok(Registered::Condemned);
    }
    let store = place.store.as_ref().map(StoreId::to_string).unwrap_or_default();
    if let Some(former) = params.instead_of {
        let sql = "UPDATE payload SET place = $3, store = $4, stored_bytes = $5, spooled_on = $6
                   WHERE hash = $1 AND place = $2";
        let instead = args![hash, former.to_string(), text, store, stored_bytes, params.spooled_on];
        batch.conn().execute(sql, instead).await?;
    }
    let sql = "INSERT INTO payload (hash, place, store, size_bytes, stored_bytes, created_at, touched_at, spooled_on)
               VALUES ($1, $2, $3, $4, $5, $6, $6, $7) ON CONFLICT DO NOTHING";
    let new = args![hash, text, store, size_bytes, stored_bytes, now, params.spooled_on];
    batch.conn().execute(sql, new).await?;
    let counts = touch(batch, &TouchPayload { hash, wanted_by, now }).await?;
    Ok(Registered::At(counts.ok_or(Fault::NoRow)?.place))
}

pub(super) async fn place_of(conn: &Conn, hash: &PayloadHash) -> Result<Option<PayloadAt>, Fault> {
    let sql = format!("SELECT {} FROM payload WHERE hash = $1", rows::PAYLOAD_AT);
    conn.query_opt(&sql, args![hash], |row| rows::payload_at(row)).await
}

async fn of(conn: &Conn, job: &JobId) -> Result<Vec<Payload>, Fault> {
    let sql = "SELECT payload FROM payload_use WHERE job = $1 ORDER BY at DESC";
    conn.query(sql, args![job], |row| rows::json(row, 0)).await
}

async fn jobs_with(conn: &Conn, (hash, limit): &(PayloadHash, u32)) -> Result<Vec<JobId>, Fault> {
    // The index does not have them in an order: of a page that very many came to, not all are sorted.
    let sql = "SELECT job FROM (SELECT job, at FROM payload_use WHERE hash = $1 LIMIT 10000) u ORDER BY at DESC, job LIMIT $2";
    conn.query(sql, args![hash, limit], |row| rows::job_id(row, 0)).await
}

async fn known(conn: &Conn, places: &[PayloadPlace]) -> Result<Vec<bool>, Fault> {
    let texts: Vec<String> = places.iter().map(ToString::to_string).collect();
    let sql = "SELECT EXISTS (SELECT 1 FROM payload p WHERE p.place = u.place)
               FROM unnest($1::text[]) WITH ORDINALITY AS u(place, n) ORDER BY u.n";
    conn.query(sql, args![texts], |row| row.get(0)).await
}

async fn condemn(
    batch: &mut Batch,
    (places, now): &(Vec<PayloadPlace>, Timestamp),
) -> Result<Vec<PayloadPlace>, Fault> {
    let known = known(batch.conn(), places).await?;
    let condemned: Vec<PayloadPlace> =
        places.iter().zip(known).filter(|(_, known)| !known).map(|(place, _)| *place).collect();
    let texts: Vec<String> = condemned.iter().map(ToString::to_string).collect();
    let sql = "INSERT INTO condemned (place, at) SELECT u.place, $2 FROM unnest($1::text[]) AS u(place) ON CONFLICT DO NOTHING";
    batch.conn().execute(sql, args![texts, now]).await?;
    Ok(condemned)
}

/// Notes that a job refers to a payload; says whether it is registered. If it is not, nothing is written.
pub(super) async fn refer(conn: &Conn, job: JobId, payload: &Payload, now: Timestamp) -> Result<bool, Fault> {
    // Whoever sweeps it at this moment is waited for.
    let sql = "INSERT INTO payload_use (job, hash, at, payload)
               SELECT $1::uuid, p.hash, $3::bigint, $4::text FROM payload p WHERE p.hash = $2 FOR SHARE
               ON CONFLICT (job, hash) DO UPDATE SET at = excluded.at, payload = excluded.payload";
    Ok(conn.execute(sql, args![job, payload.hash, now, serde_json::to_string(payload)?]).await? == 1)
}

/// Notes that jobs refer to payloads, each to one; says which of them did: those whose payloads are registered.
pub(super) async fn refer_all(
    conn: &Conn,
    uses: &[(JobId, &Payload)],
    now: Timestamp,
) -> Result<BTreeSet<JobId>, Fault> {
    if uses.is_empty() {
        return Ok(BTreeSet::new());
    }
    let (jobs, hashes): (Vec<JobId>, Vec<PayloadHash>) = uses.iter().map(|(job, payload)| (*job, payload.hash)).unzip();
    let texts: Vec<String> =
        uses.iter().map(|(_, payload)| serde_json::to_string(payload)).collect::<Result<_, _>>()?;
    // Whoever sweeps them at this moment is waited for.
    let sql = "INSERT INTO payload_use (job, hash, at, payload)
               SELECT u.job, p.hash, $4, u.payload FROM unnest($1::uuid[], $2::bytea[], $3::text[]) AS u(job, hash, payload)
               JOIN payload p ON p.hash = u.hash FOR SHARE OF p
               ON CONFLICT (job, hash) DO UPDATE SET at = excluded.at, payload = excluded.payload RETURNING job";
    let referred = conn.query(sql, args![jobs, hashes, texts, now], |row| rows::job_id(row, 0)).await?;
    Ok(referred.into_iter().collect())
}

/// The newest payload that any attempt of each job brought, as far as one did.
pub(super) async fn newest_of(conn: &Conn, jobs: &[JobId]) -> Result<HashMap<JobId, KeptPayload>, Fault> {
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT DISTINCT ON (job) job, payload FROM payload_use WHERE job = ANY($1) ORDER BY job, at DESC";
    let newest = conn.query(sql, args![jobs], |row| {
        let payload: Payload = rows::json(row, 1)?;
        Ok((rows::job_id(row, 0)?, KeptPayload { hash: payload.hash, truncated: payload.truncated }))
    });
    Ok(newest.await?.into_iter().collect())
}

/// Notes that jobs refer to no payload any more.
pub(super) async fn let_go(batch: &Batch, jobs: &[JobId]) -> Result<(), Fault> {
    if !jobs.is_empty() {
        batch.conn().execute("DELETE FROM payload_use WHERE job = ANY($1)", args![jobs]).await?;
    }
    Ok(())
}

/// Notes that each of these jobs refers to no other payload than one.
pub(super) async fn let_go_except(batch: &Batch, kept: &[(JobId, Option<PayloadHash>)]) -> Result<(), Fault> {
    if kept.is_empty() {
        return Ok(());
    }
    let (jobs, hashes): (Vec<JobId>, Vec<Option<PayloadHash>>) = kept.iter().copied().unzip();
    let sql = "DELETE FROM payload_use p USING unnest($1::uuid[], $2::bytea[]) AS u(job, hash)
               WHERE p.job = u.job AND p.hash IS DISTINCT FROM u.hash";
    batch.conn().send(sql, args![jobs, hashes]).await
}

/// Notes that a job no longer refers to a payload that a failure of it brought, unless another failure did so too.
pub(super) async fn let_go_of(conn: &Conn, job: JobId, hash: PayloadHash) -> Result<(), Fault> {
    let failures = rows::failures(conn, job).await?;
    let is_wanted = failures.iter().filter_map(|failure| failure.payload.as_ref()).any(|payload| payload.hash == hash);
    if !is_wanted {
        conn.execute("DELETE FROM payload_use WHERE job = $1 AND hash = $2", args![job, hash]).await?;
    }
    Ok(())
}

async fn sweep(batch: &mut Batch, params: &SweepPayloads) -> Result<Vec<PayloadPlace>, Fault> {
    let sql = "DELETE FROM payload WHERE hash IN
                  (SELECT hash FROM payload p WHERE touched_at < $1
                   AND NOT EXISTS (SELECT 1 FROM payload_use u WHERE u.hash = p.hash)
                   AND NOT EXISTS (SELECT 1 FROM good g WHERE g.hash = p.hash)
                   AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.job = p.wanted_by)
                   AND NOT EXISTS (SELECT 1 FROM store_id s WHERE s.id = p.store AND s.state = 'inherited') LIMIT $2)
               RETURNING place";
    let swept = batch.conn().query(sql, args![params.before, params.limit], |row| rows::parsed(row, 0)).await?;
    if !swept.is_empty() {
        let detail = json!({"payloads": swept.len()});
        activity::note(batch, &params.by, ("sweep", "payloads"), &detail, params.now).await?;
    }
    Ok(swept)
}

async fn list(conn: &Conn, params: &ListPayloads) -> Result<Page<PayloadView>, Fault> {
    let prefix = params.prefix.clone().unwrap_or_default().to_ascii_lowercase();
    let after = params.cursor.clone().unwrap_or_default();
    let sql = "SELECT p.hash, p.place, p.size_bytes, p.stored_bytes, p.created_at,
                      (SELECT count(*) FROM payload_use u WHERE u.hash = p.hash) + (SELECT count(*) FROM good g WHERE g.hash = p.hash),
                      p.spooled_on, p.unreadable
               FROM payload p WHERE p.hash >= $1 AND p.hash > $2 ORDER BY p.hash LIMIT $3";
    let (from, after) = (bytes_of(&prefix), bytes_of(&after));
    let mut found = conn
        .query(sql, args![Bytes(&from), Bytes(&after), params.limit.saturating_add(1)], |row| rows::payload_view(row))
        .await?;
    found.retain(|view| view.hash.to_string().starts_with(&prefix));
    Ok(Page::cut(found, params.limit, |view| view.hash.to_string()))
}

/// The ids under which payloads lie.
async fn ids(conn: &Conn, (): &()) -> Result<StoreIds, Fault> {
    let mut ids: [Vec<StoreId>; 3] = Default::default();
    for (state, ids) in ["own", "adopted", "inherited"].into_iter().zip(&mut ids) {
        let sql = "SELECT id FROM store_id WHERE state = $1 ORDER BY id";
        *ids = conn.query(sql, args![state], |row| rows::parsed(row, 0)).await?;
    }
    let [own, adopted, inherited] = ids;
    let own = own.into_iter().next().ok_or(Fault::NoRow)?;
    // No store here is older than ids are.
    Ok(StoreIds { own, adopted, inherited, older: false, older_inherited: false })
}

async fn adopt(batch: &mut Batch, (by, now): &(Actor, Timestamp)) -> Result<(), Fault> {
    batch.conn().execute("UPDATE store_id SET state = 'adopted' WHERE state = 'inherited'", args![]).await?;
    activity::note(batch, by, ("adopt", "payloads"), &json!({}), *now).await
}
