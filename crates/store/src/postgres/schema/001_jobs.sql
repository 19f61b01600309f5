-- The whole store, in a schema of its own. Text is compared by bytes, whatever the database's collation: cursors, ranges and
-- keys depend on it.

-- Which version this is, the oldest whose builds can work with it, and the id under which its payloads lie in the vault.
CREATE TABLE meta (
    id      integer PRIMARY KEY CHECK (id = 1),
    version integer NOT NULL,
    oldest  integer NOT NULL
);
INSERT INTO meta VALUES (1, 1, 1);
CREATE TABLE store_id (
    id    text COLLATE "C" PRIMARY KEY,
    state text COLLATE "C" NOT NULL               -- own, adopted or inherited
);
INSERT INTO store_id VALUES (md5(random()::text || clock_timestamp()::text || pg_backend_pid()::text), 'own');

-- The last group of operations that each process wrote. Its row is the fence: who lost a connection asks here whether what was
-- not answered was written, and waits until the old server process is done with it. Numbers up to `void` are not written any more.
CREATE TABLE sender (
    id      uuid PRIMARY KEY,
    last    bigint NOT NULL,
    void    bigint NOT NULL DEFAULT 0,
    seen_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- Epochs number leases and changes of breakers, in one order.
CREATE SEQUENCE epoch;

-- A pipeline and its ledger. `epoch` is that of the last change of a breaker, `gates` that of the last change to one that is not
-- closed. `paused` has who paused it, why and since when.
CREATE TABLE pipeline (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name                text COLLATE "C" NOT NULL UNIQUE,
    epoch               bigint NOT NULL DEFAULT 0,
    gates               bigint NOT NULL DEFAULT 0,
    paused              text COLLATE "C",
    accepted            bigint NOT NULL DEFAULT 0,
    queued              bigint NOT NULL DEFAULT 0,
    leased              bigint NOT NULL DEFAULT 0,
    done                bigint NOT NULL DEFAULT 0,
    dead                bigint NOT NULL DEFAULT 0,
    discarded           bigint NOT NULL DEFAULT 0,
    retrying            bigint NOT NULL DEFAULT 0,
    recovered           bigint NOT NULL DEFAULT 0,
    replaying           bigint NOT NULL DEFAULT 0,
    forgotten_done      bigint NOT NULL DEFAULT 0,
    forgotten_recovered bigint NOT NULL DEFAULT 0,
    forgotten_discarded bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The ledger of each round, kept with that of its pipeline.
CREATE TABLE round (
    pipeline            bigint NOT NULL,
    name                text COLLATE "C" NOT NULL,
    begun_at            bigint NOT NULL,
    grown_at            bigint NOT NULL,
    accepted            bigint NOT NULL DEFAULT 0,
    queued              bigint NOT NULL DEFAULT 0,
    leased              bigint NOT NULL DEFAULT 0,
    done                bigint NOT NULL DEFAULT 0,
    dead                bigint NOT NULL DEFAULT 0,
    discarded           bigint NOT NULL DEFAULT 0,
    forgotten_done      bigint NOT NULL DEFAULT 0,
    forgotten_discarded bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (pipeline, name)
) WITH (fillfactor = 50);

-- Who has a key of a round, whatever state that job is in, and the day on which a run last met it. An empty round is none.
CREATE TABLE identity (
    pipeline bigint NOT NULL,
    key      text COLLATE "C" NOT NULL,
    round    text COLLATE "C" NOT NULL,
    job      uuid NOT NULL,
    met_on   bigint NOT NULL,
    PRIMARY KEY (pipeline, key, round)
);
-- Files of tasks that were known by the hash of the whole file and the line.
CREATE TABLE task_file (
    pipeline bigint NOT NULL,
    hash     text COLLATE "C" NOT NULL,
    PRIMARY KEY (pipeline, hash)
);

-- Hot jobs: queued or leased. Which of the two is told by the row in `place` or `lease`. Their bodies are here alone: leasing does
-- not rewrite them.
CREATE SEQUENCE job_number;
CREATE TABLE job (
    seq             bigint PRIMARY KEY,
    id              uuid NOT NULL UNIQUE,
    pipeline        bigint NOT NULL,
    round           text COLLATE "C" NOT NULL DEFAULT '',
    key             text COLLATE "C",
    target          text COLLATE "C",
    accepted_at     bigint NOT NULL,
    due_at          bigint NOT NULL,
    attempts        bigint NOT NULL DEFAULT 0,
    attempts_before bigint NOT NULL DEFAULT 0,
    crashes         bigint NOT NULL DEFAULT 0,
    replays         bigint NOT NULL DEFAULT 0,
    suspect         boolean NOT NULL DEFAULT false,
    begun           boolean NOT NULL DEFAULT false,
    reason          text COLLATE "C",
    code            text COLLATE "C",
    input           text COLLATE "C" NOT NULL,
    origin          text COLLATE "C",
    definition      text COLLATE "C",
    progress        text COLLATE "C",
    token           uuid,             -- by which its holder last settled it
    replay          bigint,           -- the replay that sent it, and what only such a job has
    saved           bytea,
    cause_key       bigint,
    original        text COLLATE "C",
    auto_replays    bigint NOT NULL DEFAULT 0,
    automatic       boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_of_replay ON job (replay) WHERE replay IS NOT NULL;

-- Lanes: where queued jobs wait. The queue of a pipeline has the pipeline's number. The others have a number below zero and a
-- name: what a replay sent ('r' and its row), and what is held of a target beside a lane ('h' and the target, after the lane's name
-- unless it is the queue), with how many that are.
CREATE SEQUENCE lane_number;
CREATE TABLE lane (
    id       bigint PRIMARY KEY DEFAULT -nextval('lane_number'),
    pipeline bigint NOT NULL,
    name     text COLLATE "C" NOT NULL,
    jobs     bigint NOT NULL DEFAULT 0,
    UNIQUE (pipeline, name)
);
CREATE TABLE place (
    lane   bigint NOT NULL,
    due_at bigint NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (lane, due_at, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX place_by_seq ON place (seq);

CREATE TABLE lease (
    job     uuid PRIMARY KEY,
    seq     bigint NOT NULL,
    worker  uuid NOT NULL,
    token   uuid NOT NULL,
    epoch   bigint NOT NULL,
    until   bigint NOT NULL,
    started integer NOT NULL DEFAULT 0,  -- 1 inside its worker, 2 in a process of its own
    probe   boolean NOT NULL DEFAULT false,
    first   boolean NOT NULL DEFAULT false,
    target  text COLLATE "C"                         -- of a probe
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lease_first ON lease (token) WHERE first;
CREATE INDEX lease_probe ON lease (target) WHERE probe;

-- Receipts of jobs that were processed successfully.
CREATE TABLE done (
    job         uuid PRIMARY KEY,
    number      bigint,
    pipeline    bigint NOT NULL,
    round       text COLLATE "C" NOT NULL DEFAULT '',
    key         text COLLATE "C",
    target      text COLLATE "C",
    accepted_at bigint NOT NULL,
    done_at     bigint NOT NULL,
    attempts    bigint NOT NULL,
    crashes     bigint NOT NULL,
    replays     bigint NOT NULL,
    origin      text COLLATE "C",
    definition  text COLLATE "C",
    token       uuid
);
CREATE INDEX done_by_number ON done (number) WHERE replays > 0;
