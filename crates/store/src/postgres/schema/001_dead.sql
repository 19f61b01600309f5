-- Dead letters, what is known of failures, breakers, payloads and causes.

-- `kept_from`: retention counts from here. `payload_cut` says why its payload is not enough to work from: 1 if only its beginning
-- was kept, 2 if its bytes were never here. `opened_before`: the newest replay that was opened before it died.
CREATE TABLE dead (
    seq           bigint PRIMARY KEY,
    id            uuid NOT NULL UNIQUE,
    pipeline      bigint NOT NULL,
    round         text COLLATE "C" NOT NULL DEFAULT '',
    key           text COLLATE "C",
    target        text COLLATE "C",
    accepted_at   bigint NOT NULL,
    died_at       bigint NOT NULL,
    kept_from     bigint NOT NULL,
    attempts      bigint NOT NULL,
    crashes       bigint NOT NULL,
    replays       bigint NOT NULL,
    gate          text COLLATE "C" NOT NULL,
    reason        text COLLATE "C" NOT NULL,
    code          text COLLATE "C",
    http_status   bigint,
    proxy         text COLLATE "C",
    message       text COLLATE "C" NOT NULL,
    input         text COLLATE "C" NOT NULL,
    payload       bytea,
    payload_cut   bigint NOT NULL DEFAULT 0,
    payload_lost  boolean NOT NULL DEFAULT false,
    cause_key     bigint,
    verdict       text COLLATE "C",
    original      text COLLATE "C",
    auto_replays  bigint NOT NULL DEFAULT 0,
    suspect       boolean NOT NULL DEFAULT false,
    progress      text COLLATE "C",
    token         uuid,
    definition    text COLLATE "C",
    refailed      boolean NOT NULL DEFAULT false,
    opened_before bigint NOT NULL DEFAULT 0,
    origin        text COLLATE "C"
);
CREATE INDEX dead_by_time ON dead (died_at, seq);
CREATE INDEX dead_by_pipeline ON dead (pipeline, died_at, seq);
CREATE INDEX dead_by_age ON dead (pipeline, kept_from);
CREATE INDEX dead_by_reason ON dead (reason, died_at, seq);
CREATE INDEX dead_by_code ON dead (code, died_at, seq) WHERE code IS NOT NULL;
CREATE INDEX dead_by_target ON dead (target, died_at, seq) WHERE target IS NOT NULL;
CREATE INDEX dead_by_cause ON dead (cause_key, died_at, seq);
CREATE INDEX dead_by_cause_age ON dead (cause_key, kept_from);
CREATE INDEX dead_by_proxy ON dead (proxy, died_at, seq) WHERE proxy IS NOT NULL;

-- Dead letters by target and by the hour in which they died, each with their reason: kept with every change of `dead`. Changes are
-- only added, as rows of `dead_delta`, so that nobody waits for another who buries; they are folded later.
CREATE TABLE dead_count (
    pipeline bigint NOT NULL,
    by       text COLLATE "C" NOT NULL,
    value    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    PRIMARY KEY (pipeline, by, value, reason)
) WITH (fillfactor = 50);
CREATE INDEX dead_count_none ON dead_count (pipeline) WHERE count = 0;
CREATE TABLE dead_delta (
    pipeline bigint NOT NULL,
    by       text COLLATE "C" NOT NULL,
    value    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    count    bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE VIEW dead_sum AS SELECT * FROM dead_count UNION ALL SELECT * FROM dead_delta;
CREATE FUNCTION count_dead() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO dead_delta
        SELECT pipeline, 'target', coalesce(target, ''), reason, count(*) FROM added GROUP BY 1, 3, 4
        UNION ALL SELECT pipeline, 'hour', (died_at / 3600000)::text, reason, count(*) FROM added GROUP BY 1, 3, 4;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO dead_delta
        SELECT pipeline, 'target', coalesce(target, ''), reason, -count(*) FROM removed GROUP BY 1, 3, 4
        UNION ALL SELECT pipeline, 'hour', (died_at / 3600000)::text, reason, -count(*) FROM removed GROUP BY 1, 3, 4;
    ELSE
        INSERT INTO dead_delta
        SELECT c.pipeline, c.by, c.value, c.reason, sum(c.n)::bigint FROM
            (SELECT pipeline, 'target' AS by, coalesce(target, '') AS value, reason, 1 AS n FROM added
             UNION ALL SELECT pipeline, 'hour', (died_at / 3600000)::text, reason, 1 FROM added
             UNION ALL SELECT pipeline, 'target', coalesce(target, ''), reason, -1 FROM removed
             UNION ALL SELECT pipeline, 'hour', (died_at / 3600000)::text, reason, -1 FROM removed) c
        GROUP BY 1, 2, 3, 4 HAVING sum(c.n) <> 0;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER dead_added AFTER INSERT ON dead REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_dead();
CREATE TRIGGER dead_removed AFTER DELETE ON dead REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_dead();
CREATE TRIGGER dead_changed AFTER UPDATE ON dead REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_dead();

-- A field of an input, as text; nothing if it cannot be read: text here has no zero characters, which JSON may have.
CREATE FUNCTION input_field(input text, path text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN input::json #>> path;
EXCEPTION WHEN others THEN
    RETURN NULL;
END $$;

-- Every failed attempt of every job, as JSON; and settlements that came with a stale lease: evidence only.
CREATE TABLE failure (
    job     uuid NOT NULL,
    n       bigint NOT NULL,
    failure text COLLATE "C" NOT NULL,
    PRIMARY KEY (job, n)
);
CREATE TABLE late (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job         uuid NOT NULL,
    at          bigint NOT NULL,
    worker      uuid NOT NULL,
    epoch       bigint NOT NULL,
    destination text COLLATE "C" NOT NULL,
    failure     text COLLATE "C"
);
CREATE INDEX late_by_job ON late (job);
CREATE INDEX late_by_time ON late (at);

-- Who gave a job up, when and why.
CREATE TABLE discarded (
    job          uuid PRIMARY KEY,
    number       bigint,
    pipeline     bigint NOT NULL,
    round        text COLLATE "C" NOT NULL DEFAULT '',
    key          text COLLATE "C",
    target       text COLLATE "C",
    was          text COLLATE "C" NOT NULL,
    reason       text COLLATE "C",
    code         text COLLATE "C",
    attempts     bigint NOT NULL,
    crashes      bigint NOT NULL,
    replays      bigint NOT NULL,
    accepted_at  bigint NOT NULL,
    died_at      bigint,
    discarded_at bigint NOT NULL,
    actor        text COLLATE "C" NOT NULL,
    why          text COLLATE "C" NOT NULL,
    origin       text COLLATE "C"
);
CREATE INDEX discarded_by_number ON discarded (number) WHERE number IS NOT NULL;

-- Breakers: a value with a version, and what was said of its target and is not folded in.
CREATE TABLE breaker (
    pipeline bigint NOT NULL,
    target   text COLLATE "C" NOT NULL,
    version  bigint NOT NULL,
    shut     boolean NOT NULL,
    breaker  text COLLATE "C" NOT NULL,
    PRIMARY KEY (pipeline, target)
);
CREATE INDEX breaker_shut ON breaker (pipeline) WHERE shut;
CREATE TABLE breaker_said (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline bigint NOT NULL,
    target   text COLLATE "C" NOT NULL,
    said     text COLLATE "C" NOT NULL
);
CREATE INDEX breaker_said_of ON breaker_said (pipeline, target, id);

-- Payloads that are in the vault, and where; who refers to them; places whose bytes are being removed.
CREATE TABLE payload (
    hash         bytea PRIMARY KEY,
    place        text COLLATE "C" NOT NULL UNIQUE,
    store        text COLLATE "C" NOT NULL,
    size_bytes   bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    created_at   bigint NOT NULL,
    touched_at   bigint NOT NULL,
    wanted_by    uuid,
    spooled_on   text COLLATE "C"
);
CREATE INDEX payload_by_touch ON payload (touched_at);
CREATE TABLE payload_use (
    job     uuid NOT NULL,
    hash    bytea NOT NULL,
    at      bigint NOT NULL,
    payload text COLLATE "C" NOT NULL,
    PRIMARY KEY (job, hash)
);
CREATE INDEX payload_use_by_hash ON payload_use (hash);
CREATE TABLE condemned (
    place text COLLATE "C" PRIMARY KEY,
    at    bigint NOT NULL
);

-- Causes. A letter points at a key, a key at its cause: merging and splitting move keys. `rules` is the version of the rules since
-- which letters of a key may belong to another, `resolving` how far they were looked through since.
CREATE TABLE cause (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    version     bigint NOT NULL DEFAULT 0,
    pipeline    bigint NOT NULL,
    owner       text COLLATE "C",
    resolved_at bigint,
    mute        text COLLATE "C",
    merged_into bigint
);
CREATE INDEX cause_merged ON cause (merged_into) WHERE merged_into IS NOT NULL;
CREATE TABLE cause_key (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key        text COLLATE "C" NOT NULL UNIQUE,
    cause      bigint NOT NULL,
    origin     bigint NOT NULL,
    parent     bigint,
    retired    boolean NOT NULL DEFAULT false,
    template   text COLLATE "C" NOT NULL,
    reason     text COLLATE "C" NOT NULL,
    code       text COLLATE "C",
    status     bigint,
    parts      text COLLATE "C" NOT NULL,
    sample     text COLLATE "C" NOT NULL,
    first_seen bigint NOT NULL,
    last_seen  bigint NOT NULL,
    total      bigint NOT NULL DEFAULT 0,
    refailed   bigint NOT NULL DEFAULT 0,
    dead       bigint NOT NULL DEFAULT 0,
    recovered  bigint NOT NULL DEFAULT 0,
    discarded  bigint NOT NULL DEFAULT 0,
    rules      bigint NOT NULL DEFAULT 0,
    resolving  text COLLATE "C"
) WITH (fillfactor = 70);
CREATE INDEX cause_key_by_cause ON cause_key (cause);
CREATE INDEX cause_key_resolving ON cause_key (id) WHERE resolving IS NOT NULL;
CREATE TABLE cause_rule (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key      bigint NOT NULL,
    target   text COLLATE "C",
    text     text COLLATE "C",
    into_key bigint NOT NULL
);
CREATE INDEX cause_rule_by_key ON cause_rule (key);
CREATE INDEX cause_rule_by_part ON cause_rule (into_key);
CREATE TABLE cause_rules (
    id      integer PRIMARY KEY CHECK (id = 1),
    version bigint NOT NULL
);
INSERT INTO cause_rules VALUES (1, 0);
CREATE TABLE cause_hour (
    key      bigint NOT NULL,
    hour     bigint NOT NULL,
    count    bigint NOT NULL,
    imported bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (key, hour)
);
CREATE INDEX cause_hour_by_hour ON cause_hour (hour);
CREATE TABLE cause_target (
    key       bigint NOT NULL,
    target    text COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    last_seen bigint NOT NULL,
    PRIMARY KEY (key, target)
);
CREATE TABLE cause_note (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cause bigint NOT NULL,
    at    bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    via   text COLLATE "C" NOT NULL,
    text  text COLLATE "C" NOT NULL
);
CREATE INDEX cause_note_by_cause ON cause_note (cause);
