-- Whether the page of a letter can be worked from is in the indexes by which letters are counted: a plan of many looks up none of them.
DROP INDEX dead_by_reason;
DROP INDEX dead_by_pipeline;
DROP INDEX dead_by_cause;
CREATE INDEX dead_by_reason ON dead (reason, died_at, gate, pipeline,
    (CASE WHEN payload IS NULL THEN iif(payload_lost, 'lost', 'gone') WHEN payload_cut = 2 THEN 'gone'
          WHEN payload_cut THEN 'cut' ELSE 'kept' END));
CREATE INDEX dead_by_pipeline ON dead (pipeline, died_at, gate, reason,
    (CASE WHEN payload IS NULL THEN iif(payload_lost, 'lost', 'gone') WHEN payload_cut = 2 THEN 'gone'
          WHEN payload_cut THEN 'cut' ELSE 'kept' END));
CREATE INDEX dead_by_cause ON dead (cause_key, died_at, kept_from, gate, pipeline, reason,
    (CASE WHEN payload IS NULL THEN iif(payload_lost, 'lost', 'gone') WHEN payload_cut = 2 THEN 'gone'
          WHEN payload_cut THEN 'cut' ELSE 'kept' END));
-- Only what waits on another machine to be carried to the bucket is not here though it is kept.
CREATE INDEX payload_spooled ON payload (spooled_on) WHERE spooled_on IS NOT NULL;
