//! Keys of causes: finding the one that a letter is filed under, or making it.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;

use redrive_core::causes::{CauseId, Print};
use redrive_core::counts::Death;
use redrive_core::failures::Failure;
use redrive_core::time::Timestamp;

use super::batch::Batch;
use super::fault::Fault;
use super::sql::{Conn, args};
use super::{cause_rules, causes};

/// A letter that dies now: its pipeline and target, what it is recognised by, and whether it died before.
pub(super) struct Filing<'a> {
    pub(super) of: (i64, Option<&'a str>),
    pub(super) print: &'a Print,
    pub(super) failure: &'a Failure,
    pub(super) death: Death,
}

/// Keys that are known: their rows, and the versions of the rules since which their letters may belong to another. Rows of keys stay,
/// and the rest changes only with the version of all rules.
pub(super) type Keys = HashMap<String, (i64, u64)>;

/// Files one letter that dies now; says which key that is.
pub(super) async fn file(
    batch: &mut Batch,
    of: (i64, Option<&str>),
    (print, failure): (&Print, &Failure),
    (death, now): (Death, Timestamp),
) -> Result<i64, Fault> {
    let keys = file_all(batch, &[Filing { of, print, failure, death }], None, now).await?;
    keys.first().copied().ok_or(Fault::NoRow)
}

/// Files letters that die now under the keys of their prints, made if need be, and counts them. Says which keys those are, in their
/// order. Who names the version of the rules need not look up keys that are known since an earlier transaction.
pub(super) async fn file_all(
    batch: &mut Batch,
    letters: &[Filing<'_>],
    rules: Option<u64>,
    now: Timestamp,
) -> Result<Vec<i64>, Fault> {
    let mut known = rules.map_or_else(Keys::new, |rules| batch.take_cause_keys(rules));
    let names = letters.iter().flat_map(|letter| [letter.print.resolved(), &letter.print.key]);
    let names: BTreeSet<&str> = names.filter(|name| !known.contains_key(*name)).collect();
    if !names.is_empty() {
        known.extend(find(batch.conn(), &names).await?);
    }
    if letters.iter().any(|letter| look_up(&known, letter.print).is_none()) {
        // Who makes a key at this moment is waited for: it may be the same one.
        batch.conn().script("LOCK TABLE cause IN SHARE ROW EXCLUSIVE MODE").await?;
        known.extend(find(batch.conn(), &names).await?);
    }
    let mut keys = Vec::with_capacity(letters.len());
    for letter in letters {
        let key = match look_up(&known, letter.print) {
            Some((key, rules)) => {
                if letter.print.rules < rules {
                    cause_rules::begin(batch, key).await?;
                }
                key
            }
            None => {
                let key = make(batch, letter, now).await?;
                known.insert(letter.print.key.clone(), (key, 0));
                key
            }
        };
        batch.tallies.killed(key, (letter.of.1, letter.failure), (letter.death, now));
        keys.push(key);
    }
    if let Some(rules) = rules {
        batch.keep_cause_keys(rules, known);
    }
    Ok(keys)
}

/// The key under which a letter is filed: where the rules say, or that of its print if nothing is there.
fn look_up(known: &Keys, print: &Print) -> Option<(i64, u64)> {
    known.get(print.resolved()).or_else(|| known.get(&print.key)).copied()
}

async fn make(batch: &mut Batch, letter: &Filing<'_>, now: Timestamp) -> Result<i64, Fault> {
    let Filing { of: (pipeline, _), print, failure, .. } = letter;
    if let Some(key) = adopt(batch, print, failure, now).await? {
        return Ok(key);
    }
    let cause = make_cause(batch, *pipeline, &print.key).await?;
    insert(batch, cause, print, failure, now).await
}

/// The rows of a cause's keys.
pub(super) async fn keys_of(conn: &Conn, id: &CauseId) -> Result<Vec<i64>, Fault> {
    let (cause, _) = causes::find(conn, id).await?;
    conn.query("SELECT id FROM cause_key WHERE cause = $1 ORDER BY id", args![cause], |row| row.get(0)).await
}

/// The rows of keys, as far as they are there.
async fn find(conn: &Conn, names: &BTreeSet<&str>) -> Result<Keys, Fault> {
    let names: Vec<&str> = names.iter().copied().collect();
    let sql = "SELECT key, id, rules FROM cause_key WHERE key = ANY($1)";
    let found = conn.query(sql, args![names], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).await?;
    Ok(found.into_iter().collect())
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
