-- Letters of tries that workers elsewhere lease: `waiting`, `leased` until a time, or `tried`. A group is what a letter belongs to in the
-- system that handed it over. What is known of one that was tried besides its verdict is JSON.
ALTER TABLE try_letter ADD COLUMN state TEXT NOT NULL DEFAULT 'tried';
ALTER TABLE try_letter ADD COLUMN pipeline TEXT;
ALTER TABLE try_letter ADD COLUMN part TEXT;               -- the group
ALTER TABLE try_letter ADD COLUMN token BLOB;
ALTER TABLE try_letter ADD COLUMN until INTEGER;
ALTER TABLE try_letter ADD COLUMN details TEXT;
CREATE INDEX try_letter_open ON try_letter (try, job) WHERE state <> 'tried';

-- Letters of replays that were processed while what came of them is not durable yet: the next step need not wait for them.
ALTER TABLE replay_letter ADD COLUMN processed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX replay_letter_processed ON replay_letter (replay) WHERE processed AND state = 'running';

-- Events ever counted that have been folded into hours, so that what is forgotten of those is not missed: counters only grow. Kept by
-- triggers, so that whoever folds adds to it.
CREATE TABLE event_total (
    pipeline INTEGER NOT NULL,
    event    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (pipeline, event, reason)
) STRICT, WITHOUT ROWID;
INSERT INTO event_total (pipeline, event, reason, count)
SELECT pipeline, event, reason, sum(count) FROM hourly_count GROUP BY pipeline, event, reason;
CREATE TRIGGER hour_added AFTER INSERT ON hourly_count BEGIN
    INSERT INTO event_total (pipeline, event, reason, count) VALUES (new.pipeline, new.event, new.reason, new.count)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;
CREATE TRIGGER hour_grown AFTER UPDATE OF count ON hourly_count BEGIN
    INSERT INTO event_total (pipeline, event, reason, count) VALUES (new.pipeline, new.event, new.reason, new.count - old.count)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

-- People who signed in to a server: hashes of what their browsers send, and of the token that each signed in with.
CREATE TABLE session (
    hash      BLOB NOT NULL PRIMARY KEY,
    token     BLOB NOT NULL,
    opened_at INTEGER NOT NULL,
    ends_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_by_end ON session (ends_at);
