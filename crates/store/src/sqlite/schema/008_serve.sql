-- Tokens of a server. None is ever removed, so that the store knows whether it ever had one; a name is free again once its token is
-- revoked. Of the secret there is only a hash.
CREATE TABLE token (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE,
    role       TEXT NOT NULL,
    pipelines  TEXT NOT NULL,               -- JSON: patterns of names; none means all
    payloads   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    used_at    INTEGER
) STRICT;
CREATE UNIQUE INDEX token_by_name ON token (name) WHERE revoked_at IS NULL;

-- Answers to requests that came with a key, so that they are not done twice.
CREATE TABLE answer (
    who     TEXT NOT NULL,
    key     TEXT NOT NULL,
    kept_at INTEGER NOT NULL,
    request TEXT NOT NULL,                  -- a hash of what was asked
    status  INTEGER NOT NULL,
    body    BLOB NOT NULL,
    PRIMARY KEY (who, key)
) STRICT;
CREATE INDEX answer_by_age ON answer (kept_at);

-- Payloads that were uploaded before the letters that refer to them, by the hash that who brought them knows.
CREATE TABLE upload (
    who      TEXT NOT NULL,
    sha256   BLOB NOT NULL,
    hash     BLOB NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (sha256, who)
) STRICT;
CREATE INDEX upload_by_age ON upload (noted_at);

-- Failures that programs reported of jobs that were known: which job each was of, so that one that is sent again adds nothing.
CREATE TABLE report (
    id       BLOB NOT NULL PRIMARY KEY,
    job      BLOB NOT NULL,
    noted_at INTEGER NOT NULL
) STRICT;
CREATE INDEX report_by_age ON report (noted_at);

-- Counts of attempts that programs sent, so that what is sent again is not counted twice.
CREATE TABLE outcome (
    client   TEXT NOT NULL,
    seq      INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (client, seq)
) STRICT;
CREATE INDEX outcome_by_age ON outcome (noted_at);

-- Copies of this store to another ('to', while it lasts) and from another ('from'): which, where the other store is and its id, and
-- the vault that payloads come to. While a row is unfinished, nothing but the copy is written here.
CREATE TABLE copy (
    side        TEXT NOT NULL PRIMARY KEY,
    id          TEXT NOT NULL,
    place       TEXT NOT NULL,
    store       TEXT NOT NULL,
    vault       TEXT,
    begun_at    INTEGER NOT NULL,
    finished_at INTEGER,
    pieces      INTEGER NOT NULL DEFAULT 0,  -- how many were written
    cursor      TEXT NOT NULL DEFAULT '{}'   -- where it goes on, as JSON
) STRICT, WITHOUT ROWID;
