-- Why and since when the bytes of a payload cannot be read from the vault, as JSON: set and unset by whoever reads them.
ALTER TABLE payload ADD COLUMN unreadable text COLLATE "C";
CREATE INDEX payload_unreadable ON payload (hash) WHERE unreadable IS NOT NULL;

-- Bytes that were written again lie at another place: what was said of the place before says nothing of it. Workers of the version
-- before write them again, too.
CREATE FUNCTION forget_unreadable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.unreadable := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER payload_moved BEFORE UPDATE OF place ON payload
    FOR EACH ROW WHEN (NEW.place <> OLD.place) EXECUTE FUNCTION forget_unreadable();

-- How often payloads were asked for, by host, and found or not.
CREATE TABLE payload_reads (
    host    text COLLATE "C" PRIMARY KEY,
    found   bigint NOT NULL,
    missing bigint NOT NULL,
    since   bigint NOT NULL
);
