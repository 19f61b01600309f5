-- What a second backend, a server and a dashboard stand on: one lane table, versions of rules, tries, true counts, an end of
-- history, a leader and a record of what people did.

-- Lanes: where queued jobs wait. A lane is the queue (''), what is held of a target ('h' and the target), or what a replay sent
-- ('r' and its row).
CREATE TABLE place (
    pipeline INTEGER NOT NULL,
    lane     TEXT NOT NULL,
    due_at   INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (pipeline, lane, due_at, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO place SELECT pipeline, '', due_at, seq FROM queue;
INSERT INTO place SELECT h.pipeline, 'h' || h.target, j.due_at, h.seq FROM held h JOIN job j ON j.seq = h.seq;
INSERT INTO place SELECT pipeline, 'r' || replay, due_at, seq FROM replay_queue;
DROP TABLE queue;
DROP TABLE held;
DROP TABLE replay_queue;

-- Breakers.

-- Causes and definitions.
ALTER TABLE job ADD COLUMN definition TEXT;              -- the version of the rules that it was last tried with
ALTER TABLE done ADD COLUMN definition TEXT;
ALTER TABLE dead ADD COLUMN definition TEXT;

-- Rules that people made by splitting causes, with a version that grows with every change of them.
ALTER TABLE cause_split RENAME TO cause_rule;
CREATE TABLE cause_rules (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO cause_rules (id, version) SELECT 1, count(*) FROM cause_rule;
-- The version of the rules by which a letter has its key.
ALTER TABLE dead ADD COLUMN rules INTEGER NOT NULL DEFAULT 0;
-- The version of the rules since which letters of a key may belong to another, and how far they were looked through since: from
-- the beginning if empty, to the end if there is nothing.
ALTER TABLE cause_key ADD COLUMN rules INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cause_key ADD COLUMN resolving TEXT;
CREATE INDEX cause_key_resolving ON cause_key (id) WHERE resolving IS NOT NULL;
UPDATE cause_key SET rules = (SELECT version FROM cause_rules) WHERE id IN (SELECT key FROM cause_rule);
UPDATE dead SET rules = (SELECT version FROM cause_rules) WHERE cause_key IN (SELECT key FROM cause_rule);

-- Replays and tries.

-- Counts and the end of history.

-- Workers, leader, activity.

-- How often what others may wait for was changed: whoever sees that the file was written looks here, whether it concerns him.
ALTER TABLE pipeline ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
CREATE TABLE topic (
    name    TEXT NOT NULL PRIMARY KEY,
    changes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rounds, numbers and where a letter came from.
