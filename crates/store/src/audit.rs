//! The audit: counts every row, in one view of the database, and says what does not add up. What is asked is the same for every backend,
//! which asks it.

use redrive_core::ledger::{KeptResults, Ledger};

use crate::contract::Audit;
use crate::rows::Columns;

/// What a backend has in its own way.
pub(crate) struct Tables {
    /// How many letters are dead of each target and hour.
    pub(crate) dead_counts: &'static str,
    /// How many letters of each key have a saved payload.
    pub(crate) saved_counts: &'static str,
    /// The last number that a job was given.
    pub(crate) last_number: &'static str,
}

/// Rows that should not exist, each with what it would mean.
const CONTRADICTIONS: &[(&str, &str)] = &[
    (
        "a hot task is neither queued, held nor leased",
        "SELECT count(*) FROM job j WHERE NOT EXISTS (SELECT 1 FROM lease l WHERE l.job = j.id)
         AND NOT EXISTS (SELECT 1 FROM place q WHERE q.due_at = j.due_at AND q.seq = j.seq AND q.lane IN
            (SELECT j.pipeline WHERE j.replay IS NULL
             UNION ALL SELECT n.id FROM lane n WHERE n.pipeline = j.pipeline
                       AND n.name IN ('r' || j.replay, coalesce('r' || j.replay, '') || 'h' || j.target)))",
    ),
    (
        "a lease has no task",
        "SELECT count(*) FROM lease l WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.seq = l.seq AND j.id = l.job)",
    ),
    (
        "a place in a lane has no task",
        "SELECT count(*) FROM place q WHERE NOT EXISTS
            (SELECT 1 FROM job j WHERE j.seq = q.seq AND j.due_at = q.due_at AND q.lane IN
                (SELECT j.pipeline WHERE j.replay IS NULL
                 UNION ALL SELECT n.id FROM lane n WHERE n.pipeline = j.pipeline
                           AND n.name IN ('r' || j.replay, coalesce('r' || j.replay, '') || 'h' || j.target)))",
    ),
    (
        "a task is queued and leased at once, or in two lanes",
        "SELECT (SELECT count(*) FROM place) - (SELECT count(DISTINCT seq) FROM place)
              + (SELECT count(*) FROM lease l WHERE l.seq IN (SELECT seq FROM place))",
    ),
    (
        "a task is in two states",
        "SELECT (SELECT count(*) FROM dead d WHERE EXISTS (SELECT 1 FROM job j WHERE j.id = d.id)
                 OR EXISTS (SELECT 1 FROM done x WHERE x.job = d.id) OR EXISTS (SELECT 1 FROM discarded x WHERE x.job = d.id))
              + (SELECT count(*) FROM job j WHERE EXISTS (SELECT 1 FROM done x WHERE x.job = j.id)
                 OR EXISTS (SELECT 1 FROM discarded x WHERE x.job = j.id))
              + (SELECT count(*) FROM discarded x WHERE EXISTS (SELECT 1 FROM done y WHERE y.job = x.job))",
    ),
    (
        "a key belongs to a task that is nowhere",
        "SELECT count(*) FROM identity i WHERE NOT EXISTS (SELECT 1 FROM done x WHERE x.job = i.job)
         AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = i.job) AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.id = i.job)
         AND NOT EXISTS (SELECT 1 FROM discarded x WHERE x.job = i.job)",
    ),
    (
        "a number is that of two tasks, or was never given",
        "SELECT (SELECT count(*) FROM dead d WHERE EXISTS (SELECT 1 FROM job j WHERE j.seq = d.seq))
              + (SELECT count(*) FROM (SELECT seq FROM job UNION ALL SELECT seq FROM dead) n
                 WHERE seq > {last_number})",
    ),
    (
        "a dead letter has no failure",
        "SELECT count(*) FROM dead d WHERE NOT EXISTS (SELECT 1 FROM failure f WHERE f.job = d.id)",
    ),
    (
        "a payload is referred to and not registered",
        "SELECT count(*) FROM payload_use u WHERE NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = u.hash)",
    ),
    (
        "a payload is referred to by a task that is nowhere",
        "SELECT count(*) FROM payload_use u WHERE NOT EXISTS (SELECT 1 FROM job j WHERE j.id = u.job)
         AND NOT EXISTS (SELECT 1 FROM dead d WHERE d.id = u.job) AND NOT EXISTS (SELECT 1 FROM done x WHERE x.job = u.job)",
    ),
    (
        "a page that worked has no payload",
        "SELECT count(*) FROM good g WHERE NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = g.hash)",
    ),
    (
        "letters with a saved payload are counted wrongly",
        "SELECT count(*) FROM (
            SELECT key, sum(count) FROM (
                SELECT * FROM {saved_counts}
                UNION ALL SELECT cause_key, -1 FROM dead
                          WHERE cause_key IS NOT NULL AND payload IS NOT NULL AND payload_cut = 0) c
            GROUP BY 1 HAVING sum(count) <> 0) s",
    ),
    (
        "a task belongs to no pipeline",
        "SELECT count(*) FROM (SELECT pipeline FROM job UNION ALL SELECT pipeline FROM done UNION ALL SELECT pipeline FROM dead
                               UNION ALL SELECT pipeline FROM discarded) p
         WHERE pipeline NOT IN (SELECT id FROM pipeline)",
    ),
    (
        "a dead letter belongs to no cause",
        "SELECT count(*) FROM dead d WHERE d.cause_key IS NULL
         OR NOT EXISTS (SELECT 1 FROM cause_key k JOIN cause c ON c.id = k.cause WHERE k.id = d.cause_key)",
    ),
    (
        "a cause does not know how many letters are dead of it",
        "SELECT count(*) FROM cause_key k WHERE k.dead <> (SELECT count(*) FROM dead d WHERE d.cause_key = k.id)",
    ),
    (
        "it is not known how many letters are dead of a target or an hour",
        "SELECT count(*) FROM (
            SELECT pipeline, by, value, reason, sum(count) FROM (
                SELECT * FROM {dead_counts}
                UNION ALL SELECT pipeline, 'target', coalesce(target, ''), reason, -1 FROM dead
                UNION ALL SELECT pipeline, 'hour', CAST(died_at / 3600000 AS TEXT), reason, -1 FROM dead) c
            GROUP BY 1, 2, 3, 4 HAVING sum(count) <> 0) d",
    ),
    (
        "a count of a tracked field is below zero",
        "SELECT count(*) FROM tracked WHERE ok < 0 OR failed < 0",
    ),
    (
        "a replay does not know how far it is",
        "SELECT count(*) FROM replay r WHERE NOT r.forgotten AND (r.total, r.pending, r.running, r.recovered, r.failed) <>
            (SELECT count(*), count(*) FILTER (WHERE state = 'pending'), count(*) FILTER (WHERE state = 'running'),
                    count(*) FILTER (WHERE state = 'recovered'), count(*) FILTER (WHERE state = 'failed')
             FROM replay_letter l WHERE l.replay = r.id)",
    ),
    (
        "a letter that a replay sent is not under way",
        "SELECT count(*) FROM replay_letter l WHERE l.state = 'running'
         AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = l.job AND j.replay = l.replay)",
    ),
    (
        "the ledger of a round is not what its tasks make",
        "SELECT count(*) FROM (
            SELECT pipeline, name, sum(q) AS q, sum(l) AS l, sum(d) AS d, sum(x) AS x, sum(g) AS g, sum(a) AS a FROM (
                SELECT pipeline, name, queued AS q, leased AS l, done - forgotten_done AS d, dead AS x,
                       discarded - forgotten_discarded AS g, accepted - queued - leased - done - dead - discarded AS a FROM round
                UNION ALL SELECT j.pipeline, j.round, CASE WHEN l.job IS NULL THEN -1 ELSE 0 END,
                                 CASE WHEN l.job IS NULL THEN 0 ELSE -1 END, 0, 0, 0, 0
                          FROM job j LEFT JOIN lease l ON l.job = j.id WHERE j.round <> ''
                UNION ALL SELECT pipeline, round, 0, 0, -1, 0, 0, 0 FROM done WHERE round <> ''
                UNION ALL SELECT pipeline, round, 0, 0, 0, -1, 0, 0 FROM dead WHERE round <> ''
                UNION ALL SELECT pipeline, round, 0, 0, 0, 0, -1, 0 FROM discarded WHERE round <> '') r
            GROUP BY 1, 2 HAVING (sum(q), sum(l), sum(d), sum(x), sum(g), sum(a)) <> (0, 0, 0, 0, 0, 0)) u",
    ),
    (
        "it is not known how many tasks are held",
        "SELECT count(*) FROM lane n WHERE n.name LIKE '%h%'
         AND n.jobs <> (SELECT count(*) FROM place q WHERE q.lane = n.id)",
    ),
];

/// The contradictions, each with the statement that counts its rows.
pub(crate) fn contradictions(tables: &Tables) -> impl Iterator<Item = (&'static str, String)> {
    let Tables { dead_counts, saved_counts, last_number } = *tables;
    let asked = move |sql: &str| {
        let sql = sql.replace("{dead_counts}", dead_counts).replace("{saved_counts}", saved_counts);
        sql.replace("{last_number}", last_number)
    };
    CONTRADICTIONS.iter().map(move |(meaning, sql)| (*meaning, asked(sql)))
}

/// What was found, if it is anything.
pub(crate) fn note(audit: &mut Audit, meaning: &str, rows: i64) {
    if rows > 0 {
        audit.problems.push(format!("{meaning}: {rows} times"));
    }
}

/// Counts the rows of a pipeline, which is its one argument.
pub(crate) const COUNT: &str = "SELECT
    (SELECT count(*) FROM place WHERE lane IN (SELECT CAST($1 AS bigint) UNION ALL SELECT id FROM lane WHERE pipeline = $1)),
    (SELECT count(*) FROM job WHERE pipeline = $1 AND replay IS NOT NULL),
    (SELECT count(*) FROM lease l JOIN job j ON j.seq = l.seq WHERE j.pipeline = $1),
    (SELECT count(*) FROM job j WHERE j.pipeline = $1 AND j.attempts + j.crashes > 0
        AND NOT EXISTS (SELECT 1 FROM lease l WHERE l.job = j.id)),
    (SELECT count(*) FROM done WHERE pipeline = $1),
    (SELECT count(*) FROM done WHERE pipeline = $1 AND replays > 0),
    (SELECT count(*) FROM dead WHERE pipeline = $1),
    (SELECT count(*) FROM discarded WHERE pipeline = $1),
    (SELECT CAST(coalesce(sum(jobs), 0) AS bigint) FROM result WHERE pipeline = $1),
    (SELECT CAST(coalesce(sum(length(lines)), 0) AS bigint) FROM result WHERE pipeline = $1)";

/// What [`COUNT`] counted, with what only the ledger knows.
pub(crate) fn counted<R: Columns>(row: &R, known: Ledger) -> Result<Ledger, R::Fault> {
    let Ledger { forgotten, results: KeptResults { dropped, .. }, .. } = known;
    let (queued, leased, dead): (i64, i64, i64) = (row.get(0)?, row.get(2)?, row.get(6)?);
    let (done, discarded) = (row.get::<i64>(4)? + forgotten.done, row.get::<i64>(7)? + forgotten.discarded);
    Ok(Ledger {
        accepted: queued + leased + done + dead + discarded,
        queued,
        leased,
        done,
        dead,
        discarded,
        retrying: row.get(3)?,
        recovered: row.get::<i64>(5)? + forgotten.recovered,
        replaying: row.get(1)?,
        forgotten,
        results: KeptResults { kept: row.get(8)?, bytes: row.get(9)?, dropped },
    })
}
