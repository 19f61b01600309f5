-- Letters of tries that workers elsewhere lease: `waiting`, `leased` until a time, or `tried`. A group is what a letter belongs to in the
-- system that handed it over. What is known of one that was tried besides its verdict is JSON.
ALTER TABLE try_letter ADD COLUMN state text COLLATE "C" NOT NULL DEFAULT 'tried';
ALTER TABLE try_letter ADD COLUMN pipeline text COLLATE "C";
ALTER TABLE try_letter ADD COLUMN part text COLLATE "C"; -- the group
ALTER TABLE try_letter ADD COLUMN token uuid;
ALTER TABLE try_letter ADD COLUMN until bigint;
ALTER TABLE try_letter ADD COLUMN details text COLLATE "C";
CREATE INDEX try_letter_open ON try_letter (try, job) WHERE state <> 'tried';

-- Letters of replays that were processed while what came of them is not durable yet: the next step need not wait for them.
ALTER TABLE replay_letter ADD COLUMN processed boolean NOT NULL DEFAULT false;
CREATE INDEX replay_letter_processed ON replay_letter (replay) WHERE processed AND state = 'running';

-- Events ever counted that have been folded into hours, so that what is forgotten of those is not missed: counters only grow. Kept by
-- triggers, so that whoever folds adds to it, workers of the version before included.
CREATE TABLE event_total (
    pipeline bigint NOT NULL,
    event    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    PRIMARY KEY (pipeline, event, reason)
) WITH (fillfactor = 50);
INSERT INTO event_total (pipeline, event, reason, count)
SELECT pipeline, event, reason, sum(count) FROM hourly_count GROUP BY pipeline, event, reason;
CREATE FUNCTION hour_grown() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO event_total AS t (pipeline, event, reason, count)
    VALUES (new.pipeline, new.event, new.reason, new.count - CASE TG_OP WHEN 'UPDATE' THEN old.count ELSE 0 END)
    ON CONFLICT (pipeline, event, reason) DO UPDATE SET count = t.count + excluded.count;
    RETURN NULL;
END $$;
CREATE TRIGGER hour_added AFTER INSERT ON hourly_count FOR EACH ROW EXECUTE FUNCTION hour_grown();
CREATE TRIGGER hour_grown AFTER UPDATE OF count ON hourly_count FOR EACH ROW EXECUTE FUNCTION hour_grown();

-- People who signed in to a server: hashes of what their browsers send, and of the token that each signed in with.
CREATE TABLE session (
    hash      bytea NOT NULL PRIMARY KEY,
    token     bytea NOT NULL,
    opened_at bigint NOT NULL,
    ends_at   bigint NOT NULL
);
CREATE INDEX session_by_end ON session (ends_at);
