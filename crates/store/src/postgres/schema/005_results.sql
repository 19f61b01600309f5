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

-- How many results are kept, how many bytes they have, and how many were removed for want of room.
ALTER TABLE pipeline ADD COLUMN results bigint NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN result_bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE pipeline ADD COLUMN results_dropped bigint NOT NULL DEFAULT 0;
