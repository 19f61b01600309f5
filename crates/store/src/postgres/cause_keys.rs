//! Keys of causes: finding the one that a letter is filed under, or making it.

use std::convert::Infallible;

use redrive_core::causes::{CauseId, Print};
use redrive_core::counts::Death;
use redrive_core::failures::Failure;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{cause_rules, causes};

/// Files a letter that dies now under the key of its print, made if need be, and counts it. Says which key that is.
pub(super) async fn file(
    batch: &mut Batch,
    (pipeline, target): (i64, Option<&str>),
    (print, failure): (&Print, &Failure),
    (death, now): (Death, Timestamp),
) -> Result<i64, Fault> {
    let found = match find(batch.conn(), print.resolved()).await? {
        None if print.into.is_some() => find(batch.conn(), &print.key).await?,
        found => found,
    };
    let key = match found {
        Some((key, rules)) => {
            if print.rules < rules {
                cause_rules::begin(batch, key).await?;
            }
            key
        }
        None => match adopt(batch, print, failure, now).await? {
            Some(key) => key,
            None => {
                let cause = make_cause(batch, pipeline, &print.key).await?;
                insert(batch, cause, print, failure, now).await?
            }
        },
    };
    batch.tallies.killed(key, target, (death, now));
    Ok(key)
}

/// The rows of a cause's keys.
pub(super) async fn keys_of(conn: &Conn, id: &CauseId) -> Result<Vec<i64>, Fault> {
    let (cause, _) = causes::find(conn, id).await?;
    conn.query("SELECT id FROM cause_key WHERE cause = $1 ORDER BY id", args![cause], |row| row.get(0)).await
}

/// The row of a key, and the version of the rules since which its letters may belong to another.
async fn find(conn: &Conn, key: &str) -> Result<Option<(i64, u64)>, Fault> {
    let sql = "SELECT id, rules FROM cause_key WHERE key = $1";
    conn.query_opt(sql, args![key], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// A key that former rules made of the same failure: the new one joins its cause.
async fn adopt(batch: &Batch, print: &Print, failure: &Failure, now: Timestamp) -> Result<Option<i64>, Fault> {
    for former in &print.former {
        let sql = "SELECT cause FROM cause_key WHERE key = $1";
        if let Some(cause) = batch.conn().query_opt(sql, args![former], |row| row.get(0)).await? {
            return insert(batch, cause, print, failure, now).await.map(Some);
        }
    }
    Ok(None)
}

/// Makes a cause that is called after a key.
async fn make_cause(batch: &Batch, pipeline: i64, key: &str) -> Result<i64, Fault> {
    let mut taken = Vec::new();
    let id = loop {
        let Ok(id) = CauseId::free(key, |id| Ok::<_, Infallible>(taken.contains(id)));
        if !batch.conn().exists("SELECT 1 FROM cause WHERE name = $1", args![id.as_str()]).await? {
            break id;
        }
        taken.push(id);
    };
    let sql = "INSERT INTO cause (name, pipeline) VALUES ($1, $2) RETURNING id";
    batch.conn().query_one(sql, args![id.as_str(), pipeline], |row| row.get(0)).await
}

async fn insert(batch: &Batch, cause: i64, print: &Print, failure: &Failure, now: Timestamp) -> Result<i64, Fault> {
    let sql = "INSERT INTO cause_key (key, cause, origin, template, reason, code, status, parts, sample, first_seen, last_seen)
               VALUES ($1, $2, $2, $3, $4, $5, $9, $6, $7, $8, $8) RETURNING id";
    let made = args![
        print.key,
        cause,
        print.template,
        failure.reason.as_str(),
        failure.code,
        serde_json::to_string(&print.parts)?,
        failure.message,
        now,
        failure.http_status
    ];
    batch.conn().query_one(sql, made, |row| row.get(0)).await
}
