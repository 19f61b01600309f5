-- Suspects, which are few: whoever has one is given nothing beside it.
CREATE INDEX job_suspect ON job (id) WHERE suspect;

-- What people say about alerts: who looks after one, who has seen it, until when nobody is told of it. It outlives an incident, and is
-- forgotten with its alert.
CREATE TABLE alert_care (
    key           TEXT NOT NULL PRIMARY KEY,
    version       INTEGER NOT NULL,
    snoozed_until INTEGER,
    care          TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- What went wrong when a notice was last tried; nothing once it was told.
ALTER TABLE alert_notice ADD COLUMN error TEXT;
-- Workers of the version before do not know of snoozes: what they would post is not posted. That an alert is over is told anyway.
CREATE TRIGGER alert_snoozed BEFORE INSERT ON alert_notice
WHEN new.notice ->> 'kind' IS NOT 'over'
     AND EXISTS (SELECT 1 FROM alert_care c WHERE c.key = new.key AND c.snoozed_until > new.posted_at) BEGIN
    SELECT RAISE(IGNORE);
END;

-- A page that worked is kept by its row in `good`. Workers of an older version do not know of it, and would sweep it: they are refused, and keep
-- what they would have removed with it.
CREATE TRIGGER good_keeps BEFORE DELETE ON payload WHEN EXISTS (SELECT 1 FROM good WHERE hash = old.hash)
BEGIN
    SELECT RAISE(ABORT, 'a page that worked is kept: this worker is of an older version');
END;
