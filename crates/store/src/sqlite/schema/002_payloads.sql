-- A payload that is in the vault, and where. Its bytes are written before its row.
CREATE TABLE payload (
    hash         BLOB NOT NULL PRIMARY KEY,
    place        TEXT NOT NULL UNIQUE,
    size_bytes   INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    touched_at   INTEGER NOT NULL  -- when somebody last meant to refer to it
) STRICT, WITHOUT ROWID;
CREATE INDEX payload_by_touch ON payload (touched_at);

-- Who refers to a payload, with what came with it. A payload without a use is collected.
CREATE TABLE payload_use (
    job     BLOB NOT NULL,
    hash    BLOB NOT NULL,
    at      INTEGER NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (job, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX payload_use_by_hash ON payload_use (hash);

ALTER TABLE dead ADD COLUMN payload BLOB;
