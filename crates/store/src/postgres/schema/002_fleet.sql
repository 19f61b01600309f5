-- What is counted by every transaction that settles: changes are only added, as rows of `traffic_delta`, so that nobody waits for
-- another, and a transaction that stays open does not make every count slower than the one before. They are folded later.
CREATE TABLE traffic_delta (
    pipeline bigint NOT NULL,
    hour     bigint NOT NULL,
    target   text COLLATE "C" NOT NULL,
    proxy    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    ended    bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE VIEW traffic_sum AS SELECT * FROM traffic UNION ALL SELECT * FROM traffic_delta;
