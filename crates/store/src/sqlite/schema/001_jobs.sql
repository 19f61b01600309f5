-- A pipeline and its ledger. `epoch` grows with every lease.
CREATE TABLE pipeline (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL UNIQUE,
    epoch     INTEGER NOT NULL DEFAULT 0,
    accepted  INTEGER NOT NULL DEFAULT 0,
    queued    INTEGER NOT NULL DEFAULT 0,
    leased    INTEGER NOT NULL DEFAULT 0,
    done      INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0,
    discarded INTEGER NOT NULL DEFAULT 0,
    retrying  INTEGER NOT NULL DEFAULT 0,
    recovered INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Who has a key, whatever state that job is in.
CREATE TABLE identity (
    pipeline INTEGER NOT NULL,
    key      TEXT NOT NULL,
    job      BLOB NOT NULL,
    PRIMARY KEY (pipeline, key)
) STRICT, WITHOUT ROWID;

-- Hot jobs: queued or leased. Which of the two is told by the row in `queue`, `held` or `lease`.
CREATE TABLE job (
    seq             INTEGER PRIMARY KEY,
    id              BLOB NOT NULL UNIQUE,
    pipeline        INTEGER NOT NULL,
    key             TEXT,
    target          TEXT,
    accepted_at     INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    attempts        INTEGER NOT NULL DEFAULT 0,
    attempts_before INTEGER NOT NULL DEFAULT 0,
    crashes         INTEGER NOT NULL DEFAULT 0,
    replays         INTEGER NOT NULL DEFAULT 0,
    suspect         INTEGER NOT NULL DEFAULT 0,
    reason          TEXT,
    code            TEXT,
    input           TEXT NOT NULL
) STRICT;

CREATE TABLE queue (
    pipeline INTEGER NOT NULL,
    due_at   INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (pipeline, due_at, seq)
) STRICT, WITHOUT ROWID;

-- Queued jobs whose target's breaker is not closed.
CREATE TABLE held (
    pipeline INTEGER NOT NULL,
    target   TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (pipeline, target, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
    job     BLOB NOT NULL PRIMARY KEY,
    seq     INTEGER NOT NULL,
    worker  BLOB NOT NULL,
    token   BLOB NOT NULL,
    epoch   INTEGER NOT NULL,
    until   INTEGER NOT NULL,
    started INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Receipts of jobs that were processed successfully.
CREATE TABLE done (
    job         BLOB NOT NULL PRIMARY KEY,
    pipeline    INTEGER NOT NULL,
    key         TEXT,
    target      TEXT,
    accepted_at INTEGER NOT NULL,
    done_at     INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    crashes     INTEGER NOT NULL,
    replays     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dead (
    seq         INTEGER PRIMARY KEY,
    id          BLOB NOT NULL UNIQUE,
    pipeline    INTEGER NOT NULL,
    key         TEXT,
    target      TEXT,
    accepted_at INTEGER NOT NULL,
    died_at     INTEGER NOT NULL,
    kept_from   INTEGER NOT NULL, -- retention counts from here: when it died, or was imported
    attempts    INTEGER NOT NULL,
    crashes     INTEGER NOT NULL,
    replays     INTEGER NOT NULL,
    gate        TEXT NOT NULL,
    reason      TEXT NOT NULL,
    code        TEXT,
    http_status INTEGER,
    proxy       TEXT,
    message     TEXT NOT NULL,
    input       TEXT NOT NULL
) STRICT;
CREATE INDEX dead_by_time ON dead (died_at);
CREATE INDEX dead_by_pipeline ON dead (pipeline, died_at);
CREATE INDEX dead_by_age ON dead (pipeline, kept_from);
CREATE INDEX dead_by_reason ON dead (reason, died_at);
CREATE INDEX dead_by_code ON dead (code, died_at) WHERE code IS NOT NULL;
CREATE INDEX dead_by_target ON dead (target, died_at) WHERE target IS NOT NULL;

-- Every failed attempt of every job, as JSON.
CREATE TABLE failure (
    job     BLOB NOT NULL,
    n       INTEGER NOT NULL,
    failure TEXT NOT NULL,
    UNIQUE (job, n)
) STRICT;

-- Settlements that came with a stale lease: evidence only.
CREATE TABLE late (
    job         BLOB NOT NULL,
    at          INTEGER NOT NULL,
    worker      BLOB NOT NULL,
    epoch       INTEGER NOT NULL,
    destination TEXT NOT NULL,
    failure     TEXT
) STRICT;
CREATE INDEX late_by_job ON late (job);

-- Who gave a job up, when and why.
CREATE TABLE discarded (
    job          BLOB NOT NULL PRIMARY KEY,
    pipeline     INTEGER NOT NULL,
    key          TEXT,
    target       TEXT,
    was          TEXT NOT NULL,
    reason       TEXT,
    code         TEXT,
    attempts     INTEGER NOT NULL,
    crashes      INTEGER NOT NULL,
    replays      INTEGER NOT NULL,
    accepted_at  INTEGER NOT NULL,
    died_at      INTEGER,
    discarded_at INTEGER NOT NULL,
    actor        TEXT NOT NULL,
    why          TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE breaker (
    pipeline INTEGER NOT NULL,
    target   TEXT NOT NULL,
    held     INTEGER NOT NULL DEFAULT 0,
    waiting  INTEGER NOT NULL,
    breaker  TEXT NOT NULL,
    PRIMARY KEY (pipeline, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX breaker_waiting ON breaker (pipeline) WHERE waiting = 1;

CREATE TABLE worker (
    id          BLOB NOT NULL PRIMARY KEY,
    pid         INTEGER NOT NULL,
    attached_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What happened in each hour since the epoch.
CREATE TABLE hourly (
    pipeline INTEGER NOT NULL,
    hour     INTEGER NOT NULL,
    event    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (pipeline, hour, event, reason)
) STRICT, WITHOUT ROWID;

-- For people with a SQLite shell: readable ids, names and times.
CREATE VIEW dead_letters AS
SELECT lower(substr(hex(d.id), 1, 8) || '-' || substr(hex(d.id), 9, 4) || '-' || substr(hex(d.id), 13, 4) || '-'
           || substr(hex(d.id), 17, 4) || '-' || substr(hex(d.id), 21)) AS id,
       p.name AS pipeline, d.key, d.target, d.reason, d.code, d.message, d.http_status, d.proxy, d.attempts, d.crashes,
       d.replays, d.gate, strftime('%Y-%m-%dT%H:%M:%fZ', d.accepted_at / 1000.0, 'unixepoch') AS accepted_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.died_at / 1000.0, 'unixepoch') AS died_at, d.input
FROM dead d JOIN pipeline p ON p.id = d.pipeline;

CREATE VIEW failures AS
SELECT lower(substr(hex(f.job), 1, 8) || '-' || substr(hex(f.job), 9, 4) || '-' || substr(hex(f.job), 13, 4) || '-'
           || substr(hex(f.job), 17, 4) || '-' || substr(hex(f.job), 21)) AS job,
       f.n, f.failure ->> 'at' AS at, f.failure ->> 'reason' AS reason, f.failure ->> 'code' AS code,
       f.failure ->> 'message' AS message, f.failure
FROM failure f;
