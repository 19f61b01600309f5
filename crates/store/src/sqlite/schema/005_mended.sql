-- What hostile and real use asked for.

-- A letter keeps the newest payload that any of its attempts brought, also if the last attempt brought none.
UPDATE dead SET
    payload_cut = ifnull((SELECT u.payload ->> 'truncated' FROM payload_use u WHERE u.job = dead.id ORDER BY u.at DESC LIMIT 1), 0),
    payload = (SELECT u.hash FROM payload_use u WHERE u.job = dead.id ORDER BY u.at DESC LIMIT 1)
WHERE payload IS NULL AND EXISTS (SELECT 1 FROM payload_use u WHERE u.job = dead.id);
-- `payload_cut` of a dead letter says why its payload is not enough to work from: 1 if only its beginning was kept, 2 if its
-- bytes were never here, because the letter was imported without them.
UPDATE dead SET payload_cut = 2
WHERE payload IS NOT NULL AND NOT EXISTS (SELECT 1 FROM payload p WHERE p.hash = dead.payload);

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
