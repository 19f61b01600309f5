-- The file that results went to when a definition was last worked on with one, as JSON.
ALTER TABLE definition ADD COLUMN results text;

-- Results of jobs that one transaction settled at one time: lines of JSON, compressed.
CREATE TABLE result (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline bigint NOT NULL,
    at       bigint NOT NULL,
    jobs     bigint NOT NULL,
    lines    bytea NOT NULL
);
ALTER TABLE result ALTER COLUMN lines SET STORAGE EXTERNAL;
CREATE INDEX result_by_time ON result (pipeline, at, id);

-- The token by which its holder settled a job that a rule discards.
ALTER TABLE discarded ADD COLUMN token uuid;

-- Attempts of retries by name, which do not count towards the cap, and whether such a retry is under way.
ALTER TABLE dead ADD COLUMN uncounted bigint NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN uncounted bigint NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN by_name boolean NOT NULL DEFAULT false;

-- How many results are kept, how many bytes they have, and how many were removed for want of room.
ALTER TABLE pipeline ADD COLUMN results bigint NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN result_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN results_dropped bigint NOT NULL DEFAULT 0;

-- When a letter of a replay was last sent or came to its end, or a person last changed the replay.
ALTER TABLE replay ADD COLUMN moved_at bigint NOT NULL DEFAULT 0;
