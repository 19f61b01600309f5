//! The families of series: what each is called, its kind, and what it means. The dashboard, the alert rules and the documents name these:
//! a test compares them.

use super::text::Family;

pub const ACCEPTED: Family = ("redrive_jobs_accepted_total", "counter", "Jobs that were accepted.");
pub const DONE: Family =
    ("redrive_jobs_done_total", "counter", "Jobs that became done, those that were dead before included.");
pub const DIED: Family = ("redrive_jobs_died_total", "counter", "Jobs that died for the first time, by reason.");
pub const RETRIED: Family =
    ("redrive_attempts_retried_total", "counter", "Attempts that failed and were to be made again, by reason.");
pub const CRASHED: Family = ("redrive_attempts_crashed_total", "counter", "Attempts that took their process down.");
pub const DISCARDED: Family = ("redrive_jobs_discarded_total", "counter", "Jobs that were given up.");
pub const REPLAYED: Family = ("redrive_letters_replayed_total", "counter", "Dead letters that replays sent.");
pub const RECOVERED: Family = ("redrive_letters_recovered_total", "counter", "Dead letters that became done.");
pub const REFAILED: Family =
    ("redrive_letters_refailed_total", "counter", "Dead letters that failed again, by reason.");
pub const IMPORTED: Family =
    ("redrive_letters_imported_total", "counter", "Dead letters that were taken in from elsewhere.");
pub const LATE: Family = (
    "redrive_jobs_reported_late_total",
    "counter",
    "Jobs that died, failed again or became done more than an hour before they were reported. The other counters leave them out.",
);
pub const JOBS: Family = ("redrive_jobs", "gauge", "Jobs by state, as the ledger has them.");
pub const RETRYING: Family = ("redrive_jobs_retrying", "gauge", "Queued jobs that have failed before.");
pub const REPLAYING: Family = ("redrive_jobs_replaying", "gauge", "Queued and leased jobs that a replay sent.");
pub const BALANCED: Family =
    ("redrive_ledger_balanced", "gauge", "Whether the states of a pipeline add up to its jobs: 1 if they do.");
pub const DEAD_AGE: Family = ("redrive_oldest_dead_age_seconds", "gauge", "Age of the oldest dead letter.");
pub const QUEUE_AGE: Family =
    ("redrive_queue_age_seconds", "gauge", "For how long the first job of the queue has been due.");
pub const PAUSED: Family = ("redrive_pipeline_paused", "gauge", "Pipelines that people have rest: 1.");
pub const BREAKERS: Family =
    ("redrive_breakers", "gauge", "Targets that are waited for, by the state of their breaker.");
pub const HELD: Family = ("redrive_jobs_held", "gauge", "Jobs that wait for a target whose breaker is not closed.");
pub const REPLAYS: Family =
    ("redrive_replays_open", "gauge", "Replays that have not ended, by state; of the newest 20.");
pub const REPLAY_LETTERS: Family =
    ("redrive_replay_letters", "gauge", "Letters of those replays that have not come to their end.");
pub const WORKERS: Family = ("redrive_workers", "gauge", "Workers that are there.");
pub const ALERTS: Family = ("redrive_alerts_firing", "gauge", "Alerts that fire.");
pub const SINKS: Family = ("redrive_sinks_failing", "gauge", "Sinks of alerts that fail.");
pub const LEFT_OUT: Family =
    ("redrive_pipelines_left_out", "gauge", "Pipelines that have no series here because there are too many.");
pub const FREE: Family = ("redrive_store_free_bytes", "gauge", "Bytes free on the disk of the store.");
pub const STORE_TIMES: Family =
    ("redrive_store_call_duration_seconds", "histogram", "How long calls to the store took in this process.");
pub const STORE_FAILED: Family =
    ("redrive_store_calls_failed_total", "counter", "Calls to the store that failed in this process.");
pub const DEAD_ROWS: Family =
    ("redrive_postgres_dead_rows", "gauge", "Rows of the store that the server has not cleared away yet.");
pub const HORIZON: Family = (
    "redrive_postgres_horizon_held_seconds",
    "gauge",
    "For how long something has kept the server from clearing away rows.",
);
pub const CONNECTIONS: Family = ("redrive_postgres_connections", "gauge", "Connections that the server has.");
pub const VAULT_READS: Family =
    ("redrive_vault_reads_total", "counter", "Payloads that were asked for in this process: found, missing or failed.");
pub const VAULT_SAVES: Family =
    ("redrive_vault_saves_total", "counter", "Payloads that came to this process: saved, known, spooled or failed.");
pub const SPOOL: Family = ("redrive_vault_spool_payloads", "gauge", "Payloads that wait in the spool of this machine.");
pub const SPOOL_BYTES: Family = ("redrive_vault_spool_bytes", "gauge", "Bytes that wait in the spool of this machine.");
pub const HTTP: Family =
    ("redrive_http_requests_total", "counter", "Requests that were answered, by route and class of status.");
pub const HTTP_TIMES: Family = (
    "redrive_http_request_duration_seconds",
    "histogram",
    "How long requests took, those that wait for jobs included.",
);
pub const HTTP_OPEN: Family = ("redrive_http_requests_in_flight", "gauge", "Requests that are under way.");
pub const LOG_LOST: Family = (
    "redrive_access_log_lost_total",
    "counter",
    "Lines of the access log that were left out because writing them took too long.",
);
pub const BUILD: Family = ("redrive_build_info", "gauge", "The version of this process: 1.");

/// Every family that there may be.
pub const FAMILIES: [Family; 41] = [
    ACCEPTED,
    DONE,
    DIED,
    RETRIED,
    CRASHED,
    DISCARDED,
    REPLAYED,
    RECOVERED,
    REFAILED,
    IMPORTED,
    LATE,
    JOBS,
    RETRYING,
    REPLAYING,
    BALANCED,
    DEAD_AGE,
    QUEUE_AGE,
    PAUSED,
    BREAKERS,
    HELD,
    REPLAYS,
    REPLAY_LETTERS,
    WORKERS,
    ALERTS,
    SINKS,
    LEFT_OUT,
    FREE,
    STORE_TIMES,
    STORE_FAILED,
    DEAD_ROWS,
    HORIZON,
    CONNECTIONS,
    VAULT_READS,
    VAULT_SAVES,
    SPOOL,
    SPOOL_BYTES,
    HTTP,
    HTTP_TIMES,
    HTTP_OPEN,
    LOG_LOST,
    BUILD,
];
