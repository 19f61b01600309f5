-- Definitions, replays, counts, workers, what people did, alerts.

-- What pipelines are, by version, secrets as references; and commands that were given on a command line.
CREATE TABLE definition (
    pipeline   text COLLATE "C" NOT NULL,
    version    text COLLATE "C" NOT NULL,
    first_seen bigint NOT NULL,
    last_seen  bigint NOT NULL,
    text       text COLLATE "C" NOT NULL,
    PRIMARY KEY (pipeline, version)
);
CREATE TABLE kept_command (
    pipeline text COLLATE "C" NOT NULL,
    version  text COLLATE "C" NOT NULL,
    command  text COLLATE "C" NOT NULL
);
-- By a number that stands for it: an index takes no text of any length.
CREATE UNIQUE INDEX kept_command_once ON kept_command (pipeline, version, hashtextextended(command, 0));

-- Replays: what was chosen, how it is to be done, how far it is. `version` counts decisions.
CREATE TABLE replay (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid         uuid NOT NULL UNIQUE,
    version      bigint NOT NULL DEFAULT 0,
    name         text COLLATE "C" NOT NULL,
    actor        text COLLATE "C" NOT NULL,
    via          text COLLATE "C" NOT NULL,
    mode         text COLLATE "C" NOT NULL,
    state        text COLLATE "C" NOT NULL,
    why          text COLLATE "C",
    force_why    text COLLATE "C",
    automatic    boolean NOT NULL,
    selection    text COLLATE "C" NOT NULL,
    pipelines    text COLLATE "C" NOT NULL,
    wish         text COLLATE "C" NOT NULL,
    pins         text COLLATE "C" NOT NULL,
    pacing       text COLLATE "C" NOT NULL,
    edits        text COLLATE "C" NOT NULL,
    excluded     text COLLATE "C" NOT NULL,
    cursor       text COLLATE "C",
    created_at   bigint NOT NULL,
    finished_at  bigint,
    forgotten    boolean NOT NULL DEFAULT false,
    total        bigint NOT NULL DEFAULT 0,
    pending      bigint NOT NULL DEFAULT 0,
    running      bigint NOT NULL DEFAULT 0,
    recovered    bigint NOT NULL DEFAULT 0,
    failed       bigint NOT NULL DEFAULT 0,
    same_cause   bigint NOT NULL DEFAULT 0,
    gone         bigint NOT NULL DEFAULT 0,
    saved        bigint NOT NULL DEFAULT 0,
    forgiven     bigint NOT NULL DEFAULT 0,
    step         bigint NOT NULL DEFAULT 0,
    step_sent    bigint NOT NULL DEFAULT 0,
    step_settled bigint NOT NULL DEFAULT 0,
    step_failed  bigint NOT NULL DEFAULT 0,
    free_at      bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE INDEX replay_open ON replay (id) WHERE finished_at IS NULL;
CREATE INDEX replay_ended ON replay (finished_at) WHERE finished_at IS NOT NULL;
-- The letters of a replay and what became of them. `claimed` until they have come to their end; `letter` is what only the dead
-- letter said, while it is under way.
CREATE TABLE replay_letter (
    replay    bigint NOT NULL,
    n         bigint NOT NULL,
    job       uuid NOT NULL,
    pipeline  bigint NOT NULL,
    cause_key bigint,
    state     text COLLATE "C" NOT NULL,
    claimed   boolean NOT NULL DEFAULT true,
    saved     boolean NOT NULL DEFAULT false,
    ended_at  bigint,
    after_key bigint,
    letter    jsonb,
    PRIMARY KEY (replay, n)
);
CREATE UNIQUE INDEX replay_letter_claim ON replay_letter (job) WHERE claimed;
CREATE INDEX replay_letter_pending ON replay_letter (replay, pipeline, n) WHERE state = 'pending';
CREATE INDEX replay_letter_running ON replay_letter (replay, pipeline) WHERE state = 'running';
CREATE INDEX replay_letter_by_job ON replay_letter (job);
CREATE TABLE auto_replay (
    pipeline bigint NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    last_at  bigint NOT NULL,
    PRIMARY KEY (pipeline, reason)
);
-- What letters came to when they were tried and nothing was settled.
CREATE TABLE try (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uuid        uuid NOT NULL UNIQUE,
    actor       text COLLATE "C" NOT NULL,
    via         text COLLATE "C" NOT NULL,
    selection   text COLLATE "C" NOT NULL,
    edits       text COLLATE "C" NOT NULL,
    tried_with  text COLLATE "C" NOT NULL,
    created_at  bigint NOT NULL,
    finished_at bigint,
    outcome     text COLLATE "C"
);
CREATE TABLE try_letter (
    try       bigint NOT NULL,
    job       uuid NOT NULL,
    attempts  bigint NOT NULL,
    recovered boolean NOT NULL,
    key       text COLLATE "C",
    message   text COLLATE "C",
    PRIMARY KEY (try, job)
);

-- What happened in each minute, and in each hour before; attempts, fields of records and values of input fields that are counted.
CREATE TABLE minutely (
    pipeline bigint NOT NULL,
    minute   bigint NOT NULL,
    event    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    PRIMARY KEY (pipeline, minute, event, reason)
) WITH (fillfactor = 50);
CREATE TABLE hourly_count (
    pipeline bigint NOT NULL,
    hour     bigint NOT NULL,
    event    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    PRIMARY KEY (pipeline, hour, event, reason)
);
CREATE TABLE traffic (
    pipeline bigint NOT NULL,
    hour     bigint NOT NULL,
    target   text COLLATE "C" NOT NULL,
    proxy    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    count    bigint NOT NULL,
    ended    bigint NOT NULL,
    PRIMARY KEY (pipeline, hour, target, proxy, reason)
) WITH (fillfactor = 50);
CREATE TABLE coverage (
    pipeline bigint NOT NULL,
    version  text COLLATE "C" NOT NULL,
    hour     bigint NOT NULL,
    field    text COLLATE "C" NOT NULL,
    found    bigint NOT NULL,
    missing  bigint NOT NULL,
    PRIMARY KEY (pipeline, version, hour, field)
) WITH (fillfactor = 50);
CREATE TABLE tracked (
    pipeline bigint NOT NULL,
    field    text COLLATE "C" NOT NULL,
    value    text COLLATE "C" NOT NULL,
    ok       bigint NOT NULL,
    failed   bigint NOT NULL,
    last_at  bigint NOT NULL,
    PRIMARY KEY (pipeline, field, value)
) WITH (fillfactor = 50);
-- How far receipts and counts were looked through for what is to be forgotten: to the end if there is nothing.
CREATE TABLE lap (
    name     text COLLATE "C" PRIMARY KEY,
    cursor   bytea,
    begun_at bigint NOT NULL
);

-- Workers, leader and chores, the clock, what people did.
CREATE TABLE worker (
    id          uuid PRIMARY KEY,
    host        text COLLATE "C" NOT NULL,
    pid         bigint NOT NULL,
    remote      boolean NOT NULL,
    runs        text COLLATE "C" NOT NULL,
    holds       text COLLATE "C" NOT NULL DEFAULT '[]',
    attached_at bigint NOT NULL,
    seen_at     bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE leader (
    name   text COLLATE "C" PRIMARY KEY,
    holder uuid NOT NULL,
    term   bigint NOT NULL,
    until  bigint NOT NULL
);
CREATE TABLE chore (
    led      text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    last_run bigint NOT NULL,
    PRIMARY KEY (led, name)
);
CREATE TABLE clock (
    id   integer PRIMARY KEY CHECK (id = 1),
    seen text COLLATE "C" NOT NULL
);
CREATE TABLE activity (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    who    text COLLATE "C" NOT NULL,
    via    text COLLATE "C" NOT NULL,
    verb   text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    detail text COLLATE "C" NOT NULL
);
CREATE INDEX activity_at ON activity (at, id);

-- Alerts, what sinks are to be told of them, and how the sinks fare.
CREATE TABLE alert (
    key      text COLLATE "C" PRIMARY KEY,
    version  bigint NOT NULL,
    incident bigint NOT NULL,
    over_at  bigint,
    alert    text COLLATE "C" NOT NULL
);
CREATE TABLE alert_notice (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key         text COLLATE "C" NOT NULL,
    incident    bigint NOT NULL,
    sink        text COLLATE "C" NOT NULL,
    number      bigint NOT NULL,
    notice      text COLLATE "C" NOT NULL,
    posted_at   bigint NOT NULL,
    tries       bigint NOT NULL DEFAULT 0,
    taken_until bigint NOT NULL DEFAULT 0,
    ended_at    bigint,
    UNIQUE (key, incident, sink, number)
);
CREATE INDEX alert_notice_waiting ON alert_notice (sink, tries, id) WHERE ended_at IS NULL;
CREATE INDEX alert_notice_order ON alert_notice (sink, key, id) WHERE ended_at IS NULL;
CREATE TABLE alert_sink (
    name          text COLLATE "C" PRIMARY KEY,
    told_at       bigint,
    failing_since bigint,
    failures      bigint NOT NULL DEFAULT 0,
    error         text COLLATE "C",
    next_try      bigint,
    given_up      bigint NOT NULL DEFAULT 0,
    seen_at       bigint NOT NULL
);

-- Copies of this store to another ('to', while it lasts) and from another ('from'): which, where the other store is and its id, and
-- the vault that payloads come to. While a row is unfinished, nothing but the copy is written here.
CREATE TABLE copy (
    side        text COLLATE "C" PRIMARY KEY,
    id          text COLLATE "C" NOT NULL,
    place       text COLLATE "C" NOT NULL,
    store       text COLLATE "C" NOT NULL,
    vault       text COLLATE "C",
    begun_at    bigint NOT NULL,
    finished_at bigint,
    pieces      bigint NOT NULL DEFAULT 0,                -- how many were written
    cursor      text COLLATE "C" NOT NULL DEFAULT '{}'    -- where it goes on, as JSON
);
CREATE FUNCTION refuse_while_copied() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    mark record;
BEGIN
    SELECT side, place INTO mark FROM copy WHERE finished_at IS NULL LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = mark.side || ' ' || mark.place;
    END IF;
END $$;
