-- What daily use needs: one section per subject.

-- Rounds: the ledger of each, kept with that of its pipeline. Jobs of no round are in that of the pipeline alone.
CREATE TABLE round (
    pipeline            INTEGER NOT NULL,
    name                TEXT NOT NULL,
    begun_at            INTEGER NOT NULL,
    grown_at            INTEGER NOT NULL,  -- when a job was last accepted
    accepted            INTEGER NOT NULL DEFAULT 0,
    queued              INTEGER NOT NULL DEFAULT 0,
    leased              INTEGER NOT NULL DEFAULT 0,
    done                INTEGER NOT NULL DEFAULT 0,
    dead                INTEGER NOT NULL DEFAULT 0,
    discarded           INTEGER NOT NULL DEFAULT 0,
    forgotten_done      INTEGER NOT NULL DEFAULT 0,
    forgotten_discarded INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (pipeline, name)
) STRICT, WITHOUT ROWID;
INSERT INTO round (pipeline, name, begun_at, grown_at, accepted, queued, leased, done, dead, discarded)
SELECT pipeline, round, min(accepted_at), max(accepted_at), count(*), sum(state = 'queued'), sum(state = 'leased'),
       sum(state = 'done'), sum(state = 'dead'), sum(state = 'discarded')
FROM (SELECT j.pipeline, j.round, j.accepted_at, iif(l.job IS NULL, 'queued', 'leased') AS state
      FROM job j LEFT JOIN lease l ON l.job = j.id
      UNION ALL SELECT pipeline, round, accepted_at, 'done' FROM done
      UNION ALL SELECT pipeline, round, accepted_at, 'dead' FROM dead
      UNION ALL SELECT pipeline, round, accepted_at, 'discarded' FROM discarded)
WHERE round <> '' GROUP BY 1, 2;

-- Files of tasks that were known by the hash of the whole file and the line before tasks were known by their content: the
-- hashes, so that such a file is known again.
CREATE TABLE task_file (
    pipeline INTEGER NOT NULL,
    hash     TEXT NOT NULL,
    PRIMARY KEY (pipeline, hash)
) STRICT, WITHOUT ROWID;
INSERT INTO task_file SELECT DISTINCT pipeline, substr(key, 1, 24) FROM identity
WHERE round = '' AND key GLOB '????????????????????????:[1-9]*' AND substr(key, 1, 24) NOT GLOB '*[^0-9a-f]*'
      AND substr(key, 26) NOT GLOB '*[^0-9]*';

-- Alerts: what fires, or did, and the version that counts changes of it. `incident` is when it fired, by which it is told apart from
-- the time before.
CREATE TABLE alert (
    key      TEXT NOT NULL PRIMARY KEY,
    version  INTEGER NOT NULL,
    incident INTEGER NOT NULL,
    over_at  INTEGER,
    alert    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- What sinks are to be told, and were: each thing once. Addresses are never in here: sinks are known by the name that they have in
-- the local file.
CREATE TABLE alert_notice (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT NOT NULL,
    incident    INTEGER NOT NULL,
    sink        TEXT NOT NULL,
    number      INTEGER NOT NULL,
    notice      TEXT NOT NULL,
    posted_at   INTEGER NOT NULL,
    tries       INTEGER NOT NULL DEFAULT 0,
    taken_until INTEGER NOT NULL DEFAULT 0,  -- until when who took it may be delivering it
    ended_at    INTEGER,                     -- when it was told, or given up
    UNIQUE (key, incident, sink, number)
) STRICT;
CREATE INDEX alert_notice_waiting ON alert_notice (sink, tries, id) WHERE ended_at IS NULL;
-- Of one alert, notices come in their order.
CREATE INDEX alert_notice_order ON alert_notice (sink, key, id) WHERE ended_at IS NULL;
-- How sinks fare.
CREATE TABLE alert_sink (
    name          TEXT NOT NULL PRIMARY KEY,
    told_at       INTEGER,
    failing_since INTEGER,
    failures      INTEGER NOT NULL DEFAULT 0, -- in a row
    error         TEXT,
    next_try      INTEGER,
    given_up      INTEGER NOT NULL DEFAULT 0, -- notices that were never delivered
    seen_at       INTEGER NOT NULL            -- when it was last tried
) STRICT, WITHOUT ROWID;
-- What alerts are judged by every minute is found without looking at all there is: what died lately, and what will soon be too old.
-- What was imported did not die here.
ALTER TABLE cause_hour ADD COLUMN imported INTEGER NOT NULL DEFAULT 0;
CREATE INDEX cause_hour_by_hour ON cause_hour (hour);
-- One index more for the age would make burying a letter cost 16 % more; one column more of this one costs 3 %.
DROP INDEX dead_by_cause;
CREATE INDEX dead_by_cause ON dead (cause_key, died_at, kept_from);

-- Pipelines that people paused: who, why and since when. Nothing of them is leased meanwhile.
ALTER TABLE pipeline ADD COLUMN paused TEXT;
-- Letters that were brought back are still known by their numbers. Jobs that never died are not worth an index.
CREATE INDEX done_by_number ON done (number) WHERE replays > 0;

-- Commands that were given on a command line, by the version of the definition that they made: what they left dead can be replayed
-- without repeating them, by who ran them. One version may have run in several folders. What looks secret is masked.
CREATE TABLE kept_command (
    pipeline TEXT NOT NULL,
    version  TEXT NOT NULL,
    command  TEXT NOT NULL,              -- JSON
    PRIMARY KEY (pipeline, version, command)
) STRICT, WITHOUT ROWID;
