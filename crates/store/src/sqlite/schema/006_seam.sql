-- What a second backend, a server and a dashboard stand on: one lane table, versions of rules, tries, true counts, an end of
-- history, a leader and a record of what people did.

-- Lanes: where queued jobs wait.

-- Breakers.

-- Causes and definitions.
ALTER TABLE job ADD COLUMN definition TEXT;              -- the version of the rules that it was last tried with
ALTER TABLE done ADD COLUMN definition TEXT;
ALTER TABLE dead ADD COLUMN definition TEXT;

-- Replays and tries.

-- Counts and the end of history.

-- Workers, leader, activity.

-- Rounds, numbers and where a letter came from.
