-- What hostile and real use asked for.

-- A letter keeps the newest payload that any of its attempts brought, also if the last attempt brought none.
UPDATE dead SET
    payload_cut = ifnull((SELECT u.payload ->> 'truncated' FROM payload_use u WHERE u.job = dead.id ORDER BY u.at DESC LIMIT 1), 0),
    payload = (SELECT u.hash FROM payload_use u WHERE u.job = dead.id ORDER BY u.at DESC LIMIT 1)
WHERE payload IS NULL AND EXISTS (SELECT 1 FROM payload_use u WHERE u.job = dead.id);
