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

-- Replays and tries.

-- Counts and the end of history.

-- Workers, leader, activity.

-- Rounds, numbers and where a letter came from.
