//! Fills a store with dead letters, the way they come from another store: recognised, counted and indexed.

use std::path::Path;

use anyhow::Result;
use redrive::Redrive;
use redrive::clock::{Clock, SystemClock};
use redrive_core::actors::{Actor, Via};
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::failures::{Failure, Reason};
use redrive_core::ids::JobId;
use redrive_core::time::Timestamp;
use rusqlite::Connection;
use serde_json::json;

const PER_CALL: u64 = 5_000;

/// Causes that the letters belong to.
pub const CAUSES: u64 = 1_000;

/// Targets and proxies that they went to.
const TARGETS: u64 = 50;
const PROXIES: u64 = 8;

/// Hours over which they died.
const HOURS: i64 = 24 * 14;

const REASONS: [Reason; 5] =
    [Reason::SchemaValidation, Reason::Timeout, Reason::Blocked, Reason::ServerError, Reason::Unsolvable];

/// Fills a store with letters that died until now.
pub async fn fill(path: &Path, letters: u64) -> Result<()> {
    fill_until(path, letters, SystemClock.now()).await
}

/// Fills a store with letters that died until a moment.
pub async fn fill_until(path: &Path, letters: u64, now: Timestamp) -> Result<()> {
    let redrive = Redrive::open(&format!("sqlite:{}", path.display())).await?;
    for first in (0..letters).step_by(PER_CALL as usize) {
        let batch =
            (first..(first + PER_CALL).min(letters)).map(|n| letter((n, letters), now)).collect::<Result<_>>()?;
        redrive.import_dead(batch, &Actor::new("bench", Via::Api)).await?;
    }
    drop(redrive);
    attempts(path, now)?;
    Ok(())
}

/// One of so many letters, which died one after the other.
fn letter((n, letters): (u64, u64), now: Timestamp) -> Result<DeadLetter> {
    let cause = n % CAUSES;
    let reason = REASONS[(cause % REASONS.len() as u64) as usize];
    let target = format!("shop{}.example", cause % TARGETS);
    let span_millis = (HOURS * 3_600_000) as u64;
    let ago_millis = span_millis - n * span_millis / letters.max(1);
    let died_at = Timestamp::from_millis(now.as_millis() - ago_millis as i64);
    let code = format!("ERROR_{}", name(cause));
    let message = format!("{code}: order {n} could not be read after {}.{} s", n % 30, n % 10);
    let proxy = Some(format!("proxy-{}", n % PROXIES));
    let failure: Failure = serde_json::from_value(json!({
        "at": died_at, "attempt": 1, "replay": 0, "reason": reason, "code": code, "message": message,
        "http_status": 200, "target": target, "proxy": proxy, "duration_ms": 120, "stage": "extract",
    }))?;
    let serde_json::Value::Object(input) =
        json!({"url": format!("https://{target}/products/{n}"), "sitekey": format!("key-{}", n % 97)})
    else {
        anyhow::bail!("an input is an object")
    };
    Ok(DeadLetter {
        id: JobId::new(died_at, u128::from(n)),
        number: None,
        pipeline: format!("pipeline-{}", cause % 10).parse()?,
        round: None,
        key: None,
        input,
        target: Some(target),
        reason,
        code: Some(code),
        message,
        attempts: 1,
        crashes: 0,
        replays: 0,
        gate: if n.is_multiple_of(200) { Gate::Never } else { reason.defaults().1 },
        verdict: None,
        task_id: None,
        cause: None,
        original: None,
        origin: None,
        definition: None,
        accepted_at: died_at,
        died_at,
        http_status: Some(200),
        proxy,
        payload: None,
        payload_address: None,
        payload_place: None,
        uncounted: 0,
        payload_missing: false,
        payload_unreadable: None,
        payload_cut: false,
        failures: Some(vec![failure]),
    })
}

/// A number as letters: digits would be masked.
fn name(mut n: u64) -> String {
    let mut name = String::new();
    for _ in 0..3 {
        name.push(char::from(b'A' + u8::try_from(n % 26).unwrap_or(0)));
        n /= 26;
    }
    name
}

/// What workers would have written besides: attempts, events and fields of two weeks, and pages that letters were saved with.
fn attempts(path: &Path, now: Timestamp) -> Result<()> {
    let mut conn = Connection::open(path)?;
    let tx = conn.transaction()?;
    let hours = format!("hour(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM hour WHERE n < {HOURS})");
    let this_hour = now.hour();
    tx.execute_batch(&format!(
        "WITH RECURSIVE {hours}, target(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM target WHERE n < {TARGETS} - 1)
         INSERT INTO traffic (pipeline, hour, target, proxy, reason, count)
         SELECT p.id, {this_hour} - hour.n, 'shop' || target.n || '.example', 'proxy-' || (target.n % {PROXIES}), r.value, 100
         FROM pipeline p, hour, target, json_each('[\"\", \"timeout\"]') r WHERE p.id <= 4;
         WITH RECURSIVE {hours}
         INSERT INTO hourly_count (pipeline, hour, event, reason, count)
         SELECT p.id, {this_hour} - hour.n, e.value ->> 0, e.value ->> 1, 100 FROM pipeline p, hour, json_each(
            '[[\"accepted\", \"\"], [\"done\", \"\"], [\"recovered\", \"\"], [\"retried\", \"timeout\"], [\"retried\", \"blocked\"],
              [\"retried\", \"server_error\"], [\"buried\", \"timeout\"], [\"buried\", \"blocked\"], [\"buried\", \"server_error\"]]') e
         WHERE hour.n > 6 ON CONFLICT DO NOTHING;
         WITH RECURSIVE {hours}, field(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM field WHERE n < 7)
         INSERT INTO coverage (pipeline, version, hour, field, found, missing)
         SELECT p.id, 'version-' || (hour.n / 100), {this_hour} - hour.n, 'field-' || field.n, 100, field.n
         FROM pipeline p, hour, field;"
    ))?;
    // Each has a page of its own, whose hash has nothing to do with when it died.
    tx.execute_batch(
        "UPDATE dead SET payload = randomblob(32) WHERE reason = 'schema_validation';
         INSERT INTO payload (hash, place, size_bytes, stored_bytes, created_at, touched_at)
         SELECT payload, hex(id), 100000, 20000, died_at, died_at FROM dead WHERE payload IS NOT NULL;
         INSERT INTO payload_use (job, hash, at, payload)
         SELECT id, payload, died_at, '{\"hash\": \"' || lower(hex(payload)) || '\", \"size_bytes\": 100000}'
         FROM dead WHERE payload IS NOT NULL;",
    )?;
    tx.commit()?;
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
