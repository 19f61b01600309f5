-- Pages that worked: the last of each shape of addresses of a target (`current`), and those before them that a cause holds on to.
CREATE TABLE good (
    id       INTEGER PRIMARY KEY,
    pipeline INTEGER NOT NULL,
    target   TEXT NOT NULL,
    shape    TEXT NOT NULL,
    current  INTEGER NOT NULL,
    url      TEXT NOT NULL,
    hash     BLOB NOT NULL,
    payload  TEXT NOT NULL,
    at       INTEGER NOT NULL,
    rules    TEXT
) STRICT;
CREATE UNIQUE INDEX good_current ON good (pipeline, target, shape) WHERE current = 1;
CREATE INDEX good_by_time ON good (pipeline, at);
CREATE INDEX good_by_hash ON good (hash);
CREATE INDEX good_former ON good (id) WHERE current = 0;
-- The page that was the last one that worked when the first letter of a key died.
CREATE TABLE good_pin (
    key  INTEGER PRIMARY KEY,
    good INTEGER NOT NULL
) STRICT;
CREATE INDEX good_pin_by_good ON good_pin (good);

-- Jobs that died of a key, each once, by proxy, status, stage, rules, target and tracked fields (`input.` and the field). The value is
-- empty for those that have none, and `…` for all that come after the first 200 values. Of letters that were there before only target,
-- proxy, status and rules are known.
CREATE TABLE cause_facet (
    key   INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    value TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (key, kind, value)
) STRICT, WITHOUT ROWID;
INSERT INTO cause_facet
SELECT key, kind, iif(place <= 200, value, '…'), sum(count) FROM
    (SELECT key, kind, value, count, row_number() OVER (PARTITION BY key, kind ORDER BY count DESC, value) AS place FROM
        (SELECT cause_key AS key, 'target' AS kind, substr(ifnull(target, ''), 1, 50) AS value, count(*) AS count FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3
         UNION ALL SELECT cause_key, 'proxy', substr(ifnull(proxy, ''), 1, 50), count(*) FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3
         UNION ALL SELECT cause_key, 'status', ifnull(CAST(http_status AS TEXT), ''), count(*) FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3
         UNION ALL SELECT cause_key, 'rules', ifnull(definition, ''), count(*) FROM dead
         WHERE cause_key IS NOT NULL AND NOT refailed GROUP BY 1, 3))
GROUP BY 1, 2, 3;

-- Jobs that were done in an hour, each once, by rules and tracked fields. By target and proxy they are in `traffic`.
CREATE TABLE done_facet (
    pipeline INTEGER NOT NULL,
    hour     INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    value    TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (pipeline, hour, kind, value)
) STRICT, WITHOUT ROWID;

-- How many letters of each key can be worked on from their saved payloads: kept with every change of `dead`.
CREATE TABLE cause_saved (
    key   INTEGER PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT;
INSERT INTO cause_saved SELECT cause_key, count(*) FROM dead
WHERE cause_key IS NOT NULL AND payload IS NOT NULL AND payload_cut = 0 GROUP BY 1;
CREATE TRIGGER saved_added AFTER INSERT ON dead
WHEN new.cause_key IS NOT NULL AND new.payload IS NOT NULL AND new.payload_cut = 0 BEGIN
    INSERT INTO cause_saved VALUES (new.cause_key, 1) ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER saved_removed AFTER DELETE ON dead
WHEN old.cause_key IS NOT NULL AND old.payload IS NOT NULL AND old.payload_cut = 0 BEGIN
    UPDATE cause_saved SET count = count - 1 WHERE key = old.cause_key;
END;
CREATE TRIGGER saved_changed AFTER UPDATE OF cause_key, payload, payload_cut ON dead BEGIN
    UPDATE cause_saved SET count = count - 1
    WHERE key = old.cause_key AND old.payload IS NOT NULL AND old.payload_cut = 0;
    INSERT INTO cause_saved SELECT new.cause_key, 1
    WHERE new.cause_key IS NOT NULL AND new.payload IS NOT NULL AND new.payload_cut = 0
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
