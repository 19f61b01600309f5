-- The file that results went to when a definition was last worked on with one, as JSON.
ALTER TABLE definition ADD COLUMN results TEXT;

-- Results of jobs that one transaction settled at one time: lines of JSON, compressed.
CREATE TABLE result (
    id       INTEGER PRIMARY KEY,
    pipeline INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    jobs     INTEGER NOT NULL,
    lines    BLOB NOT NULL
) STRICT;
CREATE INDEX result_by_time ON result (pipeline, at, id);

-- The token by which its holder settled a job that a rule discards.
ALTER TABLE discarded ADD COLUMN token BLOB;

-- How many results are kept, how many bytes they have, and how many were removed for want of room.
ALTER TABLE pipeline ADD COLUMN results INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN result_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN results_dropped INTEGER NOT NULL DEFAULT 0;
