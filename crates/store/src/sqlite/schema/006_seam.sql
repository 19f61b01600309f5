-- What a second backend, a server and a dashboard stand on: one lane table, versions of rules, tries, true counts, an end of
-- history, a leader and a record of what people did.

-- Numbers first, as lanes refer to them. `seq` of a job, queued, leased or dead, is the number by which people name it: given once,
-- when it is accepted, and never again. Letters keep theirs; jobs that are queued or leased and have that of a letter go behind
-- all others.
CREATE TABLE counter (
    name   TEXT NOT NULL PRIMARY KEY,
    value  INTEGER NOT NULL,
    newest BLOB                        -- the greatest id of a job that was accepted
) STRICT, WITHOUT ROWID;
INSERT INTO counter
SELECT 'number', max(ifnull((SELECT max(seq) FROM dead), 0), ifnull((SELECT max(seq) FROM job), 0)),
       (SELECT max(id) FROM (SELECT max(id) AS id FROM job UNION ALL SELECT max(job) FROM done
                             UNION ALL SELECT max(id) FROM dead UNION ALL SELECT max(job) FROM discarded));
CREATE TABLE renumbered (seq INTEGER PRIMARY KEY) STRICT;
INSERT INTO renumbered SELECT j.seq FROM job j JOIN dead d ON d.seq = j.seq;
ALTER TABLE done ADD COLUMN number INTEGER;              -- nothing for jobs that ended before numbers were given
ALTER TABLE discarded ADD COLUMN number INTEGER;
CREATE INDEX discarded_by_number ON discarded (number) WHERE number IS NOT NULL;

-- Lanes: where queued jobs wait. The queue of a pipeline has the pipeline's number. The others have a number below zero and a
-- name: what a replay sent ('r' and its row), and what is held of a target beside a lane ('h' and the target, after the lane's name
-- unless it is the queue), with how many that are.
CREATE TABLE lane (
    id       INTEGER PRIMARY KEY,
    pipeline INTEGER NOT NULL,
    name     TEXT NOT NULL,
    jobs     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (pipeline, name)
) STRICT;
CREATE TABLE place (
    lane   INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (lane, due_at, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO lane
SELECT -row_number() OVER (), * FROM
    (SELECT pipeline, 'h' || target, count(*) FROM held GROUP BY 1, 2
     UNION ALL SELECT DISTINCT pipeline, 'r' || replay, 0 FROM replay_queue);
INSERT INTO place
SELECT pipeline, due_at, seq + iif(seq IN (SELECT seq FROM renumbered), (SELECT value FROM counter), 0) FROM queue;
INSERT INTO place
SELECT n.id, j.due_at, h.seq + iif(h.seq IN (SELECT seq FROM renumbered), (SELECT value FROM counter), 0)
FROM held h JOIN job j ON j.seq = h.seq JOIN lane n ON n.pipeline = h.pipeline AND n.name = 'h' || h.target;
INSERT INTO place
SELECT n.id, q.due_at, q.seq + iif(q.seq IN (SELECT seq FROM renumbered), (SELECT value FROM counter), 0)
FROM replay_queue q JOIN lane n ON n.pipeline = q.pipeline AND n.name = 'r' || q.replay;
UPDATE lease SET seq = seq + (SELECT value FROM counter) WHERE seq IN (SELECT seq FROM renumbered);
UPDATE job SET seq = seq + (SELECT value FROM counter) WHERE seq IN (SELECT seq FROM renumbered);
UPDATE counter SET value = max(value, ifnull((SELECT max(seq) FROM job), 0));
DROP TABLE renumbered;
DROP TABLE queue;
DROP TABLE held;
DROP TABLE replay_queue;

-- Leases: whether the job goes to see if its target is better, and which is the first of its token, so that a lease that is asked
-- for twice is found. These few have tables of their own: every lease would pay for an index.
ALTER TABLE lease ADD COLUMN probe INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lease ADD COLUMN first INTEGER NOT NULL DEFAULT 0;
CREATE TABLE lease_probe (
    job      BLOB NOT NULL PRIMARY KEY,
    pipeline INTEGER NOT NULL,
    target   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE lease_token (
    token BLOB NOT NULL PRIMARY KEY,
    job   BLOB NOT NULL
) STRICT, WITHOUT ROWID;
-- The token by which its holder last settled a job, so that a settlement that is sent again is known.
ALTER TABLE job ADD COLUMN token BLOB;
ALTER TABLE done ADD COLUMN token BLOB;
ALTER TABLE dead ADD COLUMN token BLOB;

-- Breakers: a value with a version, and what was said of its target and is not folded in. `gates` of a pipeline is the version of
-- the last change to one that is not closed. Versions and epochs come from one counter.
DROP INDEX breaker_waiting;
ALTER TABLE breaker RENAME TO breaker_before;
CREATE TABLE breaker (
    pipeline INTEGER NOT NULL,
    target   TEXT NOT NULL,
    version  INTEGER NOT NULL,
    shut     INTEGER NOT NULL,         -- whether it is not closed
    breaker  TEXT NOT NULL,
    PRIMARY KEY (pipeline, target)
) STRICT, WITHOUT ROWID;
CREATE INDEX breaker_shut ON breaker (pipeline) WHERE shut = 1;
INSERT INTO breaker
SELECT b.pipeline, b.target, p.epoch + 1, b.breaker ->> 'state' <> 'closed', b.breaker
FROM breaker_before b JOIN pipeline p ON p.id = b.pipeline;
DROP TABLE breaker_before;
ALTER TABLE pipeline ADD COLUMN gates INTEGER NOT NULL DEFAULT 0;
UPDATE pipeline SET epoch = epoch + 1, gates = epoch + 1;
CREATE TABLE breaker_said (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    pipeline INTEGER NOT NULL,
    target   TEXT NOT NULL,
    said     TEXT NOT NULL
) STRICT;
CREATE INDEX breaker_said_of ON breaker_said (pipeline, target, id);

-- Causes and definitions.
ALTER TABLE job ADD COLUMN definition TEXT;              -- the version of the rules that it was last tried with
ALTER TABLE done ADD COLUMN definition TEXT;
ALTER TABLE dead ADD COLUMN definition TEXT;
-- What pipelines are, by version, secrets as references.
CREATE TABLE definition (
    pipeline   TEXT NOT NULL,
    version    TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    text       TEXT NOT NULL,
    PRIMARY KEY (pipeline, version)
) STRICT, WITHOUT ROWID;

-- Rules that people made by splitting causes, with a version that grows with every change of them.
ALTER TABLE cause_split RENAME TO cause_rule;
CREATE TABLE cause_rules (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO cause_rules (id, version) SELECT 1, count(*) FROM cause_rule;
-- The version of the rules since which letters of a key may belong to another, and how far they were looked through since: from
-- the beginning if empty, to the end if there is nothing.
ALTER TABLE cause_key ADD COLUMN rules INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cause_key ADD COLUMN resolving TEXT;
CREATE INDEX cause_key_resolving ON cause_key (id) WHERE resolving IS NOT NULL;
UPDATE cause_key SET rules = (SELECT version FROM cause_rules) WHERE id IN (SELECT key FROM cause_rule);
CREATE INDEX cause_rule_by_part ON cause_rule (into_key);
-- `total` counts jobs, each once; what failed again is counted apart. Whether the last death of a letter is among those.
ALTER TABLE cause_key ADD COLUMN refailed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE dead ADD COLUMN refailed INTEGER NOT NULL DEFAULT 0;
-- A job is counted by its tracked fields once: where it was counted need not be kept.
ALTER TABLE job DROP COLUMN tracked;
ALTER TABLE dead DROP COLUMN tracked;
-- SQLite takes no computed column out of an index: whoever asked for it read the letters. Payloads that matter are looked up.
DROP INDEX dead_by_reason;
DROP INDEX dead_by_pipeline;
ALTER TABLE dead DROP COLUMN saved;
CREATE INDEX dead_by_reason ON dead (reason, died_at, gate, pipeline);
CREATE INDEX dead_by_pipeline ON dead (pipeline, died_at, gate, reason);
-- The key that a part was split from, and whether it was brought back: no failure finds it then, and its letters go.
ALTER TABLE cause_key ADD COLUMN parent INTEGER;
ALTER TABLE cause_key ADD COLUMN retired INTEGER NOT NULL DEFAULT 0;
UPDATE cause_key SET parent = (SELECT r.key FROM cause_rule r WHERE r.into_key = cause_key.id);
-- Whether a cause came back is seen from when it was last seen.
UPDATE cause SET resolved_at = min(regressed_at, (SELECT max(k.last_seen) FROM cause_key k WHERE k.cause = cause.id)) - 1
WHERE regressed_at IS NOT NULL AND resolved_at IS NULL;
ALTER TABLE cause DROP COLUMN regressed_at;
ALTER TABLE cause ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cause_note ADD COLUMN via TEXT NOT NULL DEFAULT 'cli';

-- Replays and tries.
ALTER TABLE replay ADD COLUMN version INTEGER NOT NULL DEFAULT 0; -- counts decisions: each is written only on the one before
ALTER TABLE replay ADD COLUMN via TEXT NOT NULL DEFAULT 'cli';    -- the way by which it was asked for
ALTER TABLE replay ADD COLUMN wish TEXT NOT NULL DEFAULT '{"mode":"suited","force":false}';
ALTER TABLE replay ADD COLUMN cursor TEXT;                        -- where choosing letters goes on
ALTER TABLE replay ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;   -- letters that are worked on from their saved payloads
ALTER TABLE replay ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0; -- letters that had failed when it was last resumed
ALTER TABLE replay ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0; -- it is no longer shown, and its letters go in steps
ALTER TABLE replay ADD COLUMN pins TEXT NOT NULL DEFAULT '{}';     -- the versions of its pipelines that it was planned with
ALTER TABLE replay_letter ADD COLUMN saved INTEGER NOT NULL DEFAULT 0;
UPDATE replay_letter SET saved = 1 WHERE replay IN (SELECT id FROM replay WHERE mode = 'saved');
UPDATE replay SET saved = total WHERE mode = 'saved';
-- What was called `refetch` asked for the task that was left at a provider first, as what suits a letter does now.
UPDATE replay SET mode = CASE mode WHEN 'refetch' THEN 'suited' WHEN 'resubmit' THEN 'refetch' ELSE mode END;
UPDATE replay SET wish = json_object('mode', mode, 'force', json(iif(force_why IS NULL, 'false', 'true')));
UPDATE replay SET state = 'cancelling' WHERE state = 'cancelled' AND finished_at IS NULL;
DROP INDEX replay_letter_pending;
CREATE INDEX replay_letter_pending ON replay_letter (replay, pipeline, n) WHERE state = 'pending';
CREATE INDEX replay_letter_running ON replay_letter (replay, pipeline) WHERE state = 'running';
-- The newest replay that was opened before a letter died: while letters are chosen in steps, those that die meanwhile are not.
ALTER TABLE dead ADD COLUMN opened_before INTEGER NOT NULL DEFAULT 0;
-- What letters came to when they were tried and nothing was settled; `attempts` says whether they were tried since.
CREATE TABLE try (
    id          INTEGER PRIMARY KEY,
    uuid        BLOB NOT NULL UNIQUE,
    actor       TEXT NOT NULL,
    via         TEXT NOT NULL,
    selection   TEXT NOT NULL,
    edits       TEXT NOT NULL,
    tried_with  TEXT NOT NULL,             -- the version of each pipeline's definition
    created_at  INTEGER NOT NULL,
    finished_at INTEGER,
    outcome     TEXT
) STRICT;
CREATE TABLE try_letter (
    try       INTEGER NOT NULL,
    job       BLOB NOT NULL,
    attempts  INTEGER NOT NULL,
    recovered INTEGER NOT NULL,
    key       TEXT,                        -- what its failure is recognised by
    message   TEXT,
    PRIMARY KEY (try, job)
) STRICT, WITHOUT ROWID;
CREATE INDEX replay_ended ON replay (finished_at) WHERE finished_at IS NOT NULL;

-- Counts and the end of history. Events by the minute for the last hours; maintenance folds them into `hourly_count`, which was
-- called `hourly`: a worker of an older version that still runs is refused, since all that moves a job counts there.
ALTER TABLE hourly RENAME TO hourly_count;
CREATE TABLE minutely (
    pipeline INTEGER NOT NULL,
    minute   INTEGER NOT NULL,
    event    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (pipeline, minute, event, reason)
) STRICT, WITHOUT ROWID;
-- Of the attempts: those by which a job came to its end for the first time. Of what was counted before it is known that who
-- succeeded did, and who is dead still.
ALTER TABLE traffic ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
UPDATE traffic SET ended = count WHERE reason = '';
UPDATE traffic SET ended = min(traffic.count, d.letters)
FROM (SELECT pipeline, died_at / 3600000 AS hour, ifnull(target, '') AS target, ifnull(proxy, '') AS proxy, reason, count(*) AS letters
      FROM dead GROUP BY 1, 2, 3, 4, 5) d
WHERE d.pipeline = traffic.pipeline AND d.hour = traffic.hour AND d.target = traffic.target AND d.proxy = traffic.proxy
  AND d.reason = traffic.reason;

-- Jobs of which nothing more is known than that they were done or discarded.
ALTER TABLE pipeline ADD COLUMN forgotten_done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN forgotten_recovered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN forgotten_discarded INTEGER NOT NULL DEFAULT 0;
-- Settlements that came too late, even for their job's receipt, go by their age.
CREATE INDEX late_by_time ON late (at);
-- How far receipts and counts were looked through for what is to be forgotten: to the end if there is nothing.
CREATE TABLE lap (
    name     TEXT NOT NULL PRIMARY KEY,
    cursor   BLOB,
    begun_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Dead letters by target and by the hour in which they died, each with their reason: kept with every change of `dead`.
CREATE TABLE dead_count (
    pipeline INTEGER NOT NULL,
    by       TEXT NOT NULL,            -- target or hour
    value    TEXT NOT NULL,            -- empty for letters without a target
    reason   TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (pipeline, by, value, reason)
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_count_none ON dead_count (pipeline) WHERE count = 0;
INSERT INTO dead_count SELECT pipeline, 'target', ifnull(target, ''), reason, count(*) FROM dead GROUP BY 1, 3, 4;
INSERT INTO dead_count SELECT pipeline, 'hour', died_at / 3600000, reason, count(*) FROM dead GROUP BY 1, 3, 4;
CREATE TRIGGER dead_added AFTER INSERT ON dead BEGIN
    INSERT INTO dead_count VALUES (new.pipeline, 'target', ifnull(new.target, ''), new.reason, 1),
                                  (new.pipeline, 'hour', new.died_at / 3600000, new.reason, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER dead_removed AFTER DELETE ON dead BEGIN
    UPDATE dead_count SET count = count - 1
    WHERE pipeline = old.pipeline AND by = 'target' AND value = ifnull(old.target, '') AND reason = old.reason;
    UPDATE dead_count SET count = count - 1
    WHERE pipeline = old.pipeline AND by = 'hour' AND value = CAST(old.died_at / 3600000 AS TEXT) AND reason = old.reason;
END;
CREATE TRIGGER dead_changed AFTER UPDATE OF target, reason, died_at ON dead BEGIN
    UPDATE dead_count SET count = count - 1
    WHERE pipeline = old.pipeline AND by = 'target' AND value = ifnull(old.target, '') AND reason = old.reason;
    UPDATE dead_count SET count = count - 1
    WHERE pipeline = old.pipeline AND by = 'hour' AND value = CAST(old.died_at / 3600000 AS TEXT) AND reason = old.reason;
    INSERT INTO dead_count VALUES (new.pipeline, 'target', ifnull(new.target, ''), new.reason, 1),
                                  (new.pipeline, 'hour', new.died_at / 3600000, new.reason, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;

-- Workers, leader, activity.
ALTER TABLE worker ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE worker ADD COLUMN boot TEXT DEFAULT '';           -- the running system whose lock proves its life; none without a lock
ALTER TABLE worker ADD COLUMN remote INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker ADD COLUMN runs TEXT NOT NULL DEFAULT '[]';
ALTER TABLE worker ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
UPDATE worker SET seen_at = attached_at;

-- Who leads what, by which term and until when; and when the chores of what is led were last begun.
CREATE TABLE leader (
    name   TEXT NOT NULL PRIMARY KEY,
    holder BLOB NOT NULL,
    term   INTEGER NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE chore (
    led      TEXT NOT NULL,
    name     TEXT NOT NULL,
    last_run INTEGER NOT NULL,
    PRIMARY KEY (led, name)
) STRICT, WITHOUT ROWID;

-- What people did. Rows are only added, and forgotten with history.
CREATE TABLE activity (
    id     INTEGER PRIMARY KEY,
    at     INTEGER NOT NULL,
    who    TEXT NOT NULL,
    via    TEXT NOT NULL,
    verb   TEXT NOT NULL,
    object TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX activity_at ON activity (at, id);

-- How often what others may wait for was changed: whoever sees that the file was written looks here, whether it concerns him.
ALTER TABLE pipeline ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
CREATE TABLE topic (
    name    TEXT NOT NULL PRIMARY KEY,
    changes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rounds, and where a job came from. An empty round is none.
ALTER TABLE job ADD COLUMN round TEXT NOT NULL DEFAULT '';
ALTER TABLE done ADD COLUMN round TEXT NOT NULL DEFAULT '';
ALTER TABLE dead ADD COLUMN round TEXT NOT NULL DEFAULT '';
ALTER TABLE discarded ADD COLUMN round TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN origin TEXT;
ALTER TABLE done ADD COLUMN origin TEXT;
ALTER TABLE dead ADD COLUMN origin TEXT;
ALTER TABLE discarded ADD COLUMN origin TEXT;

-- Who has a key of a round, whatever state that job is in, and the day on which a run last met it.
CREATE TABLE identity_of_round (
    pipeline INTEGER NOT NULL,
    round    TEXT NOT NULL DEFAULT '',
    key      TEXT NOT NULL,
    job      BLOB NOT NULL,
    met_on   INTEGER NOT NULL DEFAULT 0, -- days since the epoch
    PRIMARY KEY (pipeline, key, round)   -- keys differ more than rounds, and are compared first
) STRICT, WITHOUT ROWID;
INSERT INTO identity_of_round (pipeline, key, job, met_on) SELECT pipeline, key, job, unixepoch() / 86400 FROM identity;
DROP TABLE identity;
ALTER TABLE identity_of_round RENAME TO identity;
