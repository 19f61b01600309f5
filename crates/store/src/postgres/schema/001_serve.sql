-- Tokens of a server. None is ever removed, so that the store knows whether it ever had one; a name is free again once its token is
-- revoked. Of the secret there is only a hash.
CREATE TABLE token (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text COLLATE "C" NOT NULL,
    hash       bytea NOT NULL UNIQUE,
    role       text COLLATE "C" NOT NULL,
    pipelines  text COLLATE "C" NOT NULL,           -- JSON: patterns of names; none means all
    payloads   boolean NOT NULL,
    created_at bigint NOT NULL,
    created_by text COLLATE "C" NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    used_at    bigint
);
CREATE UNIQUE INDEX token_by_name ON token (name) WHERE revoked_at IS NULL;

-- Answers to requests that came with a key, so that they are not done twice.
CREATE TABLE answer (
    who     text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    kept_at bigint NOT NULL,
    request text COLLATE "C" NOT NULL,              -- a hash of what was asked
    status  integer NOT NULL,
    body    bytea NOT NULL,
    PRIMARY KEY (who, key)
);
CREATE INDEX answer_by_age ON answer (kept_at);

-- Payloads that were uploaded before the letters that refer to them, by the hash that who brought them knows.
CREATE TABLE upload (
    who      text COLLATE "C" NOT NULL,
    sha256   bytea NOT NULL,
    hash     bytea NOT NULL,
    noted_at bigint NOT NULL,
    PRIMARY KEY (sha256, who)
);
CREATE INDEX upload_by_age ON upload (noted_at);

-- Failures that programs reported of jobs that were known: which job each was of, so that one that is sent again adds nothing.
CREATE TABLE report (
    id       uuid NOT NULL PRIMARY KEY,
    job      uuid NOT NULL,
    noted_at bigint NOT NULL
);
CREATE INDEX report_by_age ON report (noted_at);

-- Counts of attempts that programs sent, so that what is sent again is not counted twice.
CREATE TABLE outcome (
    client   text COLLATE "C" NOT NULL,
    seq      bigint NOT NULL,
    noted_at bigint NOT NULL,
    PRIMARY KEY (client, seq)
);
CREATE INDEX outcome_by_age ON outcome (noted_at);
