-- Pages that worked: the last of each shape of addresses of a target (`current`), and those before them that a cause holds on to.
CREATE TABLE good (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline bigint NOT NULL,
    target   text COLLATE "C" NOT NULL,
    shape    text COLLATE "C" NOT NULL,
    current  boolean NOT NULL,
    url      text COLLATE "C" NOT NULL,
    hash     bytea NOT NULL,
    payload  text COLLATE "C" NOT NULL,
    at       bigint NOT NULL,
    rules    text COLLATE "C"
);
CREATE UNIQUE INDEX good_current ON good (pipeline, target, shape) WHERE current;
CREATE INDEX good_by_time ON good (pipeline, at);
CREATE INDEX good_by_hash ON good (hash);
CREATE INDEX good_former ON good (id) WHERE NOT current;
-- The page that was the last one that worked when the first letter of a key died.
CREATE TABLE good_pin (
    key  bigint PRIMARY KEY,
    good bigint NOT NULL
);
CREATE INDEX good_pin_by_good ON good_pin (good);
-- Workers of the version before do not know that pages refer to payloads: what they would sweep stays.
CREATE FUNCTION good_keeps() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM good WHERE hash = old.hash) THEN
        RETURN NULL;
    END IF;
    RETURN old;
END $$;
CREATE TRIGGER good_keeps BEFORE DELETE ON payload FOR EACH ROW EXECUTE FUNCTION good_keeps();

-- Jobs that died of a key, each once, by proxy, status, stage, rules, target and tracked fields (`input.` and the field). The value is
-- empty for those that have none, and `…` for all that come after the first 200 values. Of letters that were there before only target,
-- proxy, status and rules are known.
CREATE TABLE cause_facet (
    key   bigint NOT NULL,
    kind  text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (key, kind, value)
) WITH (fillfactor = 70);
INSERT INTO cause_facet (key, kind, value, count)
SELECT key, kind, CASE WHEN place <= 200 THEN value ELSE '…' END, sum(count)::bigint FROM
    (SELECT key, kind, value, count, row_number() OVER (PARTITION BY key, kind ORDER BY count DESC, value) AS place FROM
        (SELECT cause_key AS key, 'target' AS kind, left(coalesce(target, ''), 50) AS value, count(*) AS count FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3
         UNION ALL SELECT cause_key, 'proxy', left(coalesce(proxy, ''), 50), count(*) FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3
         UNION ALL SELECT cause_key, 'status', coalesce(http_status::text, ''), count(*) FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3
         UNION ALL SELECT cause_key, 'rules', coalesce(definition, ''), count(*) FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3) c) p
GROUP BY 1, 2, 3;

-- Jobs that were done in an hour, each once, by rules and tracked fields. By target and proxy they are in `traffic`. Like traffic they are
-- only added to, and folded later.
CREATE TABLE done_facet (
    pipeline bigint NOT NULL,
    hour     bigint NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    value    text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    PRIMARY KEY (pipeline, hour, kind, value)
);
CREATE TABLE done_facet_delta (
    pipeline bigint NOT NULL,
    hour     bigint NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    value    text COLLATE "C" NOT NULL,
    count    bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE VIEW done_facet_sum AS SELECT * FROM done_facet UNION ALL SELECT * FROM done_facet_delta;

-- How many letters of each key can be worked on from their saved payloads: kept with every change of `dead`, by workers of the version
-- before too. Changes are only added, and folded later.
CREATE TABLE cause_saved (
    key   bigint PRIMARY KEY,
    count bigint NOT NULL
) WITH (fillfactor = 70);
CREATE TABLE cause_saved_delta (
    key   bigint NOT NULL,
    count bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX cause_saved_delta_of ON cause_saved_delta (key);
CREATE VIEW cause_saved_sum AS SELECT * FROM cause_saved UNION ALL SELECT * FROM cause_saved_delta;
INSERT INTO cause_saved SELECT cause_key, count(*) FROM dead
WHERE cause_key IS NOT NULL AND payload IS NOT NULL AND payload_cut = 0 GROUP BY 1;
CREATE FUNCTION count_saved() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO cause_saved_delta SELECT cause_key, count(*) FROM added
        WHERE cause_key IS NOT NULL AND payload IS NOT NULL AND payload_cut = 0 GROUP BY 1;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        INSERT INTO cause_saved_delta SELECT cause_key, -count(*) FROM removed
        WHERE cause_key IS NOT NULL AND payload IS NOT NULL AND payload_cut = 0 GROUP BY 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER saved_added AFTER INSERT ON dead REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_saved();
CREATE TRIGGER saved_removed AFTER DELETE ON dead REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_saved();
CREATE TRIGGER saved_changed AFTER UPDATE ON dead REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_saved();
