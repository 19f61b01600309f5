-- Why and since when the bytes of a payload cannot be read from the vault, as JSON: set and unset by whoever reads them.
ALTER TABLE payload ADD COLUMN unreadable TEXT;
CREATE INDEX payload_unreadable ON payload (hash) WHERE unreadable IS NOT NULL;

-- Bytes that were written again lie at another place: what was said of the place before says nothing of it.
CREATE TRIGGER payload_moved AFTER UPDATE OF place ON payload
WHEN new.place <> old.place AND new.unreadable IS NOT NULL BEGIN
    UPDATE payload SET unreadable = NULL WHERE hash = new.hash;
END;

-- How often payloads were asked for, by host, and found or not.
CREATE TABLE payload_reads (
    host    TEXT PRIMARY KEY,
    found   INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    since   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
