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
