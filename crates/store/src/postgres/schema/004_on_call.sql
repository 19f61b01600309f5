-- Suspects, which are few: whoever has one is given nothing beside it.
CREATE INDEX job_suspect ON job (id) WHERE suspect;
-- Who died of a key is counted by adding rows, which are folded into `cause_facet` later, as traffic is. Workers of the version before go
-- on counting there.
CREATE TABLE cause_facet_delta (
    key   bigint NOT NULL,
    kind  text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    count bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);

-- What people say about alerts: who looks after one, who has seen it, until when nobody is told of it. It outlives an incident, and is
-- forgotten with its alert.
CREATE TABLE alert_care (
    key           text COLLATE "C" PRIMARY KEY,
    version       bigint NOT NULL,
    snoozed_until bigint,
    care          text COLLATE "C" NOT NULL
);
-- What went wrong when a notice was last tried; nothing once it was told.
ALTER TABLE alert_notice ADD COLUMN error text COLLATE "C";
-- Workers of the version before do not know of snoozes: what they would post is not posted. That an alert is over is told anyway.
CREATE FUNCTION alert_snoozed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF new.notice::json ->> 'kind' IS DISTINCT FROM 'over'
       AND EXISTS (SELECT 1 FROM alert_care c WHERE c.key = new.key AND c.snoozed_until > new.posted_at) THEN
        RETURN NULL;
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER alert_snoozed BEFORE INSERT ON alert_notice FOR EACH ROW EXECUTE FUNCTION alert_snoozed();
