-- What hostile and real use asked for.

-- Under which values of tracked fields a job is counted as failed, as JSON: `[["sitekey","k1"]]`. Nothing for letters that died
-- before this was kept.
ALTER TABLE dead ADD COLUMN tracked TEXT;
ALTER TABLE job ADD COLUMN tracked TEXT;
UPDATE tracked SET ok = max(ok, 0), failed = max(failed, 0) WHERE ok < 0 OR failed < 0;

-- Whether the attempt under way had begun when its worker was lost: a replay that is cancelled counts it. `lease.started` is 1 for
-- a job that began inside its worker and 2 for one that began in a process of its own.
ALTER TABLE job ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;
-- Whether it must run alone when it is replayed, though no crash of it is proven.
ALTER TABLE dead ADD COLUMN suspect INTEGER NOT NULL DEFAULT 0;

-- Whether the replay that sent a letter was begun by policy: such a letter has one attempt.
ALTER TABLE job ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0;

-- What the clock showed when somebody last looked, and whether it is believed, as JSON.
CREATE TABLE clock (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    seen TEXT NOT NULL
) STRICT;
-- The ids under which this store's payloads lie in the vault. It writes to its own; those of the store it was copied from are
-- inherited, until somebody says that there is no other. The empty id stands for payloads kept before stores had ids.
CREATE TABLE store_id (
    id      TEXT NOT NULL PRIMARY KEY,
    state   TEXT NOT NULL,             -- own, adopted or inherited
    machine TEXT,                      -- where the file was when it took the id
    inode   INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO store_id (id, state) SELECT '', 'adopted' WHERE EXISTS (SELECT 1 FROM payload);
ALTER TABLE payload ADD COLUMN store TEXT NOT NULL DEFAULT '';
ALTER TABLE payload ADD COLUMN wanted_by BLOB;         -- the job whose attempt touched it last

-- Places whose bytes are being removed because no row knew them: nobody may register them any more.
CREATE TABLE condemned (
    place TEXT NOT NULL PRIMARY KEY,
    at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Letters whose payload was collected before they could refer to it say so, and the audit no longer complains about them.
ALTER TABLE dead ADD COLUMN payload_lost INTEGER NOT NULL DEFAULT 0;
UPDATE dead SET payload = NULL, payload_cut = 0, payload_lost = 1
WHERE payload IS NOT NULL AND EXISTS (SELECT 1 FROM payload_use u WHERE u.job = dead.id AND u.hash = dead.payload)
  AND NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = dead.payload);
DELETE FROM payload_use WHERE NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = payload_use.hash);
-- Letters that were imported did not refer to their payload, though its bytes were here: it could be collected. The same goes for
-- those that a replay has sent.
INSERT OR IGNORE INTO payload_use (job, hash, at, payload)
SELECT named.job, named.hash, named.at, coalesce(
    (SELECT f.failure -> 'payload' FROM failure f WHERE f.job = named.job
        AND f.failure -> 'payload' ->> 'hash' = lower(hex(named.hash)) ORDER BY f.n DESC LIMIT 1),
    json_object('hash', lower(hex(named.hash)), 'size_bytes', p.size_bytes, 'truncated', json(iif(named.cut = 1, 'true', 'false'))))
FROM (SELECT id AS job, payload AS hash, died_at AS at, payload_cut AS cut FROM dead WHERE payload IS NOT NULL
      UNION ALL
      SELECT job, unhex(letter ->> 'payload'), letter ->> 'died_at', letter ->> 'cut' FROM replay_letter
      WHERE claimed = 1 AND length(letter ->> 'payload') = 64) AS named
JOIN payload p ON p.hash = named.hash;

-- A letter keeps the newest payload that any of its attempts brought and that is here, also if the last attempt brought none.
UPDATE dead SET
    payload_cut = ifnull((SELECT u.payload ->> 'truncated' FROM payload_use u WHERE u.job = dead.id ORDER BY u.at DESC LIMIT 1), 0),
    payload = (SELECT u.hash FROM payload_use u WHERE u.job = dead.id ORDER BY u.at DESC LIMIT 1)
WHERE payload IS NULL AND EXISTS (SELECT 1 FROM payload_use u WHERE u.job = dead.id);
-- `payload_cut` of a dead letter says why its payload is not enough to work from: 1 if only its beginning was kept, 2 if its
-- bytes were never here, because the letter was imported without them.
UPDATE dead SET payload_cut = 2
WHERE payload IS NOT NULL AND NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = dead.payload);

ALTER TABLE payload ADD COLUMN spooled_on TEXT;        -- the host whose spool has it, while it is on its way to the vault
-- How far the last attempt of a letter got: a task that was paid for and that a replay asks for first.
ALTER TABLE dead ADD COLUMN progress TEXT;

-- The pipelines that a worker cannot work on for now, and why, as JSON. Gone with the worker.
ALTER TABLE worker ADD COLUMN holds TEXT NOT NULL DEFAULT '[]';
