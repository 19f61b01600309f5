-- A group of dead letters with one root cause, and what people say about it.
CREATE TABLE cause (
    id           INTEGER PRIMARY KEY,
    name         TEXT NOT NULL UNIQUE,
    pipeline     INTEGER NOT NULL,
    owner        TEXT,
    resolved_at  INTEGER,
    regressed_at INTEGER,
    mute         TEXT,
    merged_into  INTEGER               -- the cause that has its keys now
) STRICT;
CREATE INDEX cause_merged ON cause (merged_into) WHERE merged_into IS NOT NULL;

-- What failures are recognised by. A cause owns one key, or several once it was merged; letters point at the key, so that
-- merging and splitting move keys and no letters. `total` counts burials, `dead` the letters that are there.
CREATE TABLE cause_key (
    id         INTEGER PRIMARY KEY,
    key        TEXT NOT NULL UNIQUE,
    cause      INTEGER NOT NULL,
    origin     INTEGER NOT NULL,       -- the cause it was made for
    template   TEXT NOT NULL,
    reason     TEXT NOT NULL,
    code       TEXT,
    status     INTEGER,
    parts      TEXT NOT NULL,
    sample     TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    total      INTEGER NOT NULL DEFAULT 0,
    dead       INTEGER NOT NULL DEFAULT 0,
    recovered  INTEGER NOT NULL DEFAULT 0,
    discarded  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX cause_key_by_cause ON cause_key (cause);

-- Which failures of a key belong to another one, because a person said so.
CREATE TABLE cause_split (
    key    INTEGER NOT NULL,  -- whose failures
    target TEXT,              -- those of this target
    text   TEXT,              -- those with this in their message
    into_key INTEGER NOT NULL
) STRICT;
CREATE INDEX cause_split_by_key ON cause_split (key);

CREATE TABLE cause_hour (
    key   INTEGER NOT NULL,
    hour  INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (key, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE cause_target (
    key       INTEGER NOT NULL,
    target    TEXT NOT NULL,
    count     INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (key, target)
) STRICT, WITHOUT ROWID;

-- What people did and said, oldest first.
CREATE TABLE cause_note (
    cause INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    actor TEXT NOT NULL,
    text  TEXT NOT NULL
) STRICT;
CREATE INDEX cause_note_by_cause ON cause_note (cause);

ALTER TABLE dead ADD COLUMN cause_key INTEGER;
ALTER TABLE dead ADD COLUMN verdict TEXT;
ALTER TABLE dead ADD COLUMN original TEXT;               -- the input as it was accepted, if a replay changed it
ALTER TABLE dead ADD COLUMN payload_cut INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead ADD COLUMN auto_replays INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead ADD COLUMN saved INTEGER GENERATED ALWAYS AS (payload IS NOT NULL AND NOT payload_cut) VIRTUAL;
-- With all that a plan needs to know, so that counting does not read the letters.
DROP INDEX dead_by_reason;
CREATE INDEX dead_by_reason ON dead (reason, died_at, gate, pipeline, saved);
DROP INDEX dead_by_pipeline;
CREATE INDEX dead_by_pipeline ON dead (pipeline, died_at, gate, reason, saved);
CREATE INDEX dead_by_cause ON dead (cause_key, died_at);
CREATE INDEX dead_by_gate ON dead (gate, died_at);
CREATE INDEX dead_by_auto ON dead (pipeline, died_at) WHERE gate = 'auto';
CREATE INDEX dead_by_proxy ON dead (proxy, died_at) WHERE proxy IS NOT NULL;
UPDATE dead SET payload_cut = 1 WHERE payload IS NOT NULL AND EXISTS
    (SELECT 1 FROM payload_use u WHERE u.job = dead.id AND u.hash = dead.payload AND u.payload ->> 'truncated' = 1);

-- A replay: what was chosen, how it is to be done, how far it is.
CREATE TABLE replay (
    id          INTEGER PRIMARY KEY,
    uuid        BLOB NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    actor       TEXT NOT NULL,
    mode        TEXT NOT NULL,
    state       TEXT NOT NULL,
    why         TEXT,                  -- why it is paused or was cancelled
    force_why   TEXT,
    automatic   INTEGER NOT NULL,
    selection   TEXT NOT NULL,
    pipelines   TEXT NOT NULL,
    pacing      TEXT NOT NULL,
    edits       TEXT NOT NULL,
    excluded    TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER,
    total       INTEGER NOT NULL,
    pending     INTEGER NOT NULL,
    running     INTEGER NOT NULL DEFAULT 0,
    recovered   INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    same_cause  INTEGER NOT NULL DEFAULT 0,
    gone        INTEGER NOT NULL DEFAULT 0,
    step        INTEGER NOT NULL DEFAULT 0,
    step_sent   INTEGER NOT NULL DEFAULT 0,
    step_settled INTEGER NOT NULL DEFAULT 0,
    step_failed INTEGER NOT NULL DEFAULT 0,
    free_at     INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX replay_open ON replay (id) WHERE finished_at IS NULL;

-- The letters of a replay and what became of them. `claimed` until they have come to their end.
CREATE TABLE replay_letter (
    replay    INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    job       BLOB NOT NULL,
    pipeline  INTEGER NOT NULL,
    cause_key INTEGER,
    state     TEXT NOT NULL,
    claimed   INTEGER NOT NULL DEFAULT 1,
    ended_at  INTEGER,
    after_key INTEGER,                 -- the cause it failed for then
    letter    TEXT,                    -- what only its dead letter said, while it is under way
    PRIMARY KEY (replay, n)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX replay_letter_claim ON replay_letter (job) WHERE claimed = 1;
CREATE INDEX replay_letter_pending ON replay_letter (replay, n) WHERE state = 'pending';
CREATE INDEX replay_letter_by_job ON replay_letter (job);

-- Letters that a replay sent, apart from the queue: who works on the one does not wait for the other.
CREATE TABLE replay_queue (
    replay   INTEGER NOT NULL,
    pipeline INTEGER NOT NULL,
    due_at   INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (replay, pipeline, due_at, seq)
) STRICT, WITHOUT ROWID;

ALTER TABLE job ADD COLUMN replay INTEGER;
ALTER TABLE job ADD COLUMN saved BLOB;                   -- the payload to work from
ALTER TABLE job ADD COLUMN cause_key INTEGER;            -- what it was dead of
ALTER TABLE job ADD COLUMN original TEXT;
ALTER TABLE job ADD COLUMN auto_replays INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN replaying INTEGER NOT NULL DEFAULT 0;

-- When letters were last replayed by themselves.
CREATE TABLE auto_replay (
    pipeline INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (pipeline, reason)
) STRICT, WITHOUT ROWID;

-- Attempts in each hour: `reason` is empty for those that succeeded.
CREATE TABLE traffic (
    pipeline INTEGER NOT NULL,
    hour     INTEGER NOT NULL,
    target   TEXT NOT NULL,
    proxy    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (pipeline, hour, target, proxy, reason)
) STRICT, WITHOUT ROWID;

-- Which fields of records were found, by version of the rules.
CREATE TABLE coverage (
    pipeline INTEGER NOT NULL,
    version  TEXT NOT NULL,
    hour     INTEGER NOT NULL,
    field    TEXT NOT NULL,
    found    INTEGER NOT NULL,
    missing  INTEGER NOT NULL,
    PRIMARY KEY (pipeline, version, hour, field)
) STRICT, WITHOUT ROWID;

-- Values of input fields that a pipeline keeps count of.
CREATE TABLE tracked (
    pipeline INTEGER NOT NULL,
    field    TEXT NOT NULL,
    value    TEXT NOT NULL,
    ok       INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    PRIMARY KEY (pipeline, field, value)
) STRICT, WITHOUT ROWID;

DROP VIEW dead_letters;
CREATE VIEW dead_letters AS
SELECT lower(substr(hex(d.id), 1, 8) || '-' || substr(hex(d.id), 9, 4) || '-' || substr(hex(d.id), 13, 4) || '-'
           || substr(hex(d.id), 17, 4) || '-' || substr(hex(d.id), 21)) AS id,
       p.name AS pipeline, d.key, d.target, c.name AS cause, d.reason, d.code, d.message, d.http_status, d.proxy, d.attempts,
       d.crashes, d.replays, d.gate, strftime('%Y-%m-%dT%H:%M:%fZ', d.accepted_at / 1000.0, 'unixepoch') AS accepted_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.died_at / 1000.0, 'unixepoch') AS died_at, d.input
FROM dead d JOIN pipeline p ON p.id = d.pipeline LEFT JOIN cause_key k ON k.id = d.cause_key
     LEFT JOIN cause c ON c.id = k.cause;

CREATE VIEW causes AS
SELECT c.name AS cause, p.name AS pipeline, k.reason, k.code, k.template, sum(k.dead) AS dead, sum(k.total) AS total,
       sum(k.recovered) AS recovered, c.owner,
       strftime('%Y-%m-%dT%H:%M:%fZ', min(k.first_seen) / 1000.0, 'unixepoch') AS first_seen,
       strftime('%Y-%m-%dT%H:%M:%fZ', max(k.last_seen) / 1000.0, 'unixepoch') AS last_seen
FROM cause c JOIN pipeline p ON p.id = c.pipeline JOIN cause_key k ON k.cause = c.id GROUP BY c.id;
