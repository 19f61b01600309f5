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
