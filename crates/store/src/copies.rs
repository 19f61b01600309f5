//! What comes over when a store is copied: the tables that every backend has, by the names of their columns.
//!
//! A table that is neither a part nor [left out](LEFT_OUT) with a reason fails a test of each backend.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number, or a time.
    Int,
    /// Whether something holds.
    Flag,
    /// Text.
    Text,
    /// An id of 16 bytes.
    Id,
    /// Bytes.
    Bytes,
    /// JSON.
    Json,
}

/// A table that comes over.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// What it has, in words.
    pub label: &'static str,
    /// The columns by which its rows are told apart, in whose order they are read.
    pub(crate) key: usize,
    /// All columns, the key first.
    pub(crate) columns: &'static [(&'static str, Kind)],
}

impl Part {
    /// Which column of its rows has this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| *column == name)
    }

    /// The names of its columns, the key first.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|(name, _)| *name)
    }

    /// How many columns the key has.
    pub const fn key_columns(&self) -> usize {
        self.key
    }

    /// Whether triggers of the target wrote its rows as others came over: what they are is what they were, forgotten hours included.
    pub(crate) fn is_counted_meanwhile(&self) -> bool {
        self.name == "event_total"
    }

    /// The part with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PARTS.iter().find(|part| part.name == name)
    }
}

macro_rules! parts {
    ($($label:literal $name:ident [$($key:ident: $kkind:ident),*] $($column:ident: $kind:ident),*;)*) => {
        &[$(Part {
            name: stringify!($name),
            label: $label,
            key: [$(stringify!($key)),*].len(),
            columns: &[$((stringify!($key), Kind::$kkind),)* $((stringify!($column), Kind::$kind)),*],
        }),*]
    };
}

/// What comes over, in this order: whatever a row points at is there before it.
pub const PARTS: &[Part] = parts! {
    "pipelines" pipeline [id: Int] name: Text, epoch: Int, gates: Int, paused: Text, accepted: Int, queued: Int, leased: Int,
        done: Int, dead: Int, discarded: Int, retrying: Int, recovered: Int, replaying: Int, forgotten_done: Int,
        forgotten_recovered: Int, forgotten_discarded: Int, results: Int, result_bytes: Int, results_dropped: Int,
        forgotten_after: Int;
    "rounds" round [pipeline: Int, name: Text] begun_at: Int, grown_at: Int, accepted: Int, queued: Int, leased: Int, done: Int,
        dead: Int, discarded: Int, forgotten_done: Int, forgotten_discarded: Int;
    "definitions" definition [pipeline: Text, version: Text] first_seen: Int, last_seen: Int, text: Text, results: Text;
    "commands" kept_command [pipeline: Text, version: Text, command: Text];
    "task files" task_file [pipeline: Int, hash: Text];
    "payloads" payload [hash: Bytes] place: Text, store: Text, size_bytes: Int, stored_bytes: Int, created_at: Int,
        touched_at: Int, wanted_by: Id, spooled_on: Text, unreadable: Text;
    "causes" cause [id: Int] name: Text, version: Int, pipeline: Int, owner: Text, resolved_at: Int, mute: Text, merged_into: Int;
    "keys of causes" cause_key [id: Int] key: Text, cause: Int, origin: Int, parent: Int, retired: Flag, template: Text,
        reason: Text, code: Text, status: Int, parts: Text, sample: Text, first_seen: Int, last_seen: Int, total: Int,
        refailed: Int, dead: Int, recovered: Int, discarded: Int, rules: Int, resolving: Text;
    "rules of causes" cause_rule [id: Int] key: Int, target: Text, text: Text, into_key: Int;
    "hours of causes" cause_hour [key: Int, hour: Int] count: Int, imported: Int;
    "targets of causes" cause_target [key: Int, target: Text] count: Int, last_seen: Int;
    "facets of causes" cause_facet [key: Int, kind: Text, value: Text] count: Int;
    "notes on causes" cause_note [id: Int] cause: Int, at: Int, actor: Text, via: Text, text: Text;
    "replays" replay [id: Int] uuid: Id, version: Int, name: Text, actor: Text, via: Text, mode: Text, state: Text, why: Text,
        force_why: Text, automatic: Flag, selection: Text, pipelines: Text, wish: Text, pins: Text, pacing: Text, edits: Text,
        excluded: Text, cursor: Text, created_at: Int, finished_at: Int, forgotten: Flag, total: Int, pending: Int,
        running: Int, recovered: Int, failed: Int, same_cause: Int, gone: Int, saved: Int, forgiven: Int, step: Int,
        step_sent: Int, step_settled: Int, step_failed: Int, free_at: Int, moved_at: Int;
    "automatic replays" auto_replay [pipeline: Int, reason: Text] last_at: Int;
    "dead letters" dead [seq: Int] id: Id, pipeline: Int, round: Text, key: Text, target: Text, accepted_at: Int, died_at: Int,
        kept_from: Int, attempts: Int, crashes: Int, replays: Int, gate: Text, reason: Text, code: Text, http_status: Int,
        proxy: Text, message: Text, input: Text, payload: Bytes, payload_cut: Int, payload_lost: Flag, cause_key: Int,
        verdict: Text, original: Text, auto_replays: Int, suspect: Flag, progress: Text, token: Id, definition: Text,
        refailed: Flag, opened_before: Int, origin: Text, uncounted: Int;
    "lanes" lane [id: Int] pipeline: Int, name: Text, jobs: Int;
    "tasks that wait" job [seq: Int] id: Id, pipeline: Int, round: Text, key: Text, target: Text, accepted_at: Int, due_at: Int,
        attempts: Int, attempts_before: Int, crashes: Int, replays: Int, suspect: Flag, begun: Flag, reason: Text, code: Text,
        input: Text, origin: Text, definition: Text, progress: Text, token: Id, replay: Int, saved: Bytes, cause_key: Int,
        original: Text, auto_replays: Int, automatic: Flag, uncounted: Int, by_name: Flag;
    "places in lanes" place [lane: Int, due_at: Int, seq: Int];
    "letters of replays" replay_letter [replay: Int, n: Int] job: Id, pipeline: Int, cause_key: Int, state: Text, claimed: Flag,
        saved: Flag, ended_at: Int, after_key: Int, letter: Json, processed: Flag;
    "receipts" done [job: Id] number: Int, pipeline: Int, round: Text, key: Text, target: Text, accepted_at: Int, done_at: Int,
        attempts: Int, crashes: Int, replays: Int, origin: Text, definition: Text, token: Id;
    "results" result [id: Int] pipeline: Int, at: Int, jobs: Int, lines: Bytes;
    "discarded tasks" discarded [job: Id] number: Int, pipeline: Int, round: Text, key: Text, target: Text, was: Text,
        reason: Text, code: Text, attempts: Int, crashes: Int, replays: Int, accepted_at: Int, died_at: Int,
        discarded_at: Int, actor: Text, why: Text, origin: Text, token: Id;
    "keys" identity [pipeline: Int, key: Text, round: Text] job: Id, met_on: Int;
    "failures" failure [job: Id, n: Int] failure: Text;
    "late settlements" late [id: Int] job: Id, at: Int, worker: Id, epoch: Int, destination: Text, failure: Text;
    "uses of payloads" payload_use [job: Id, hash: Bytes] at: Int, payload: Text;
    "breakers" breaker [pipeline: Int, target: Text] version: Int, shut: Flag, breaker: Text;
    "signals of breakers" breaker_said [id: Int] pipeline: Int, target: Text, said: Text;
    "tries" try [id: Int] uuid: Id, actor: Text, via: Text, selection: Text, edits: Text, tried_with: Text, created_at: Int,
        finished_at: Int, outcome: Text;
    "letters of tries" try_letter [try: Int, job: Id] attempts: Int, recovered: Flag, key: Text, message: Text, state: Text,
        pipeline: Text, part: Text, token: Id, until: Int, details: Text;
    "counts by the minute" minutely [pipeline: Int, minute: Int, event: Text, reason: Text] count: Int;
    "counts by the hour" hourly_count [pipeline: Int, hour: Int, event: Text, reason: Text] count: Int;
    "counts ever" event_total [pipeline: Int, event: Text, reason: Text] count: Int;
    "traffic" traffic [pipeline: Int, hour: Int, target: Text, proxy: Text, reason: Text] count: Int, ended: Int;
    "fields found" coverage [pipeline: Int, version: Text, hour: Int, field: Text] found: Int, missing: Int;
    "facets of tasks that are done" done_facet [pipeline: Int, hour: Int, kind: Text, value: Text] count: Int;
    "pages that worked" good [id: Int] pipeline: Int, target: Text, shape: Text, current: Flag, url: Text, hash: Bytes,
        payload: Text, at: Int, rules: Text;
    "pages that causes hold on to" good_pin [key: Int] good: Int;
    "tracked fields" tracked [pipeline: Int, field: Text, value: Text] ok: Int, failed: Int, last_at: Int;
    "chores" chore [led: Text, name: Text] last_run: Int;
    "alerts" alert [key: Text] version: Int, incident: Int, over_at: Int, alert: Text;
    "notices of alerts" alert_notice [id: Int] key: Text, incident: Int, sink: Text, number: Int, notice: Text, posted_at: Int,
        tries: Int, taken_until: Int, ended_at: Int, error: Text;
    "care for alerts" alert_care [key: Text] version: Int, snoozed_until: Int, care: Text;
    "sinks of alerts" alert_sink [name: Text] told_at: Int, failing_since: Int, failures: Int, error: Text, next_try: Int,
        given_up: Int, seen_at: Int;
    "tokens" token [id: Int] name: Text, hash: Bytes, role: Text, pipelines: Text, payloads: Flag, created_at: Int,
        created_by: Text, expires_at: Int, revoked_at: Int, used_at: Int;
    "answers by key" answer [who: Text, key: Text] kept_at: Int, request: Text, status: Int, body: Bytes;
    "uploads" upload [sha256: Bytes, who: Text] hash: Bytes, noted_at: Int;
    "reports" report [id: Id] job: Id, noted_at: Int;
    "outcomes" outcome [client: Text, seq: Int] noted_at: Int;
    "activity" activity [id: Int] at: Int, who: Text, via: Text, verb: Text, object: Text, detail: Text;
};

/// Tables of any backend that do not come over, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("meta", "the schema is the target's own"),
    ("store_id", "so is its id; those of the source come with the counters where payloads stay in its vault"),
    ("copy", "a copy is no part of what is copied"),
    ("counter", "comes with the counters"),
    ("cause_rules", "comes with the counters"),
    ("dead_count", "is counted anew as dead letters are written"),
    ("dead_delta", "so is this"),
    ("traffic_delta", "is folded before anything is read"),
    ("done_facet_delta", "so is this"),
    ("cause_facet_delta", "so is this"),
    ("cause_saved", "is counted anew as dead letters are written"),
    ("cause_saved_delta", "so is this"),
    ("payload_reads", "says how often the vault of the source was asked"),
    ("lease", "nothing is leased"),
    ("lease_probe", "nothing is leased"),
    ("lease_token", "nothing is leased"),
    ("worker", "nobody works"),
    ("leader", "nobody leads"),
    ("session", "people sign in again"),
    ("sender", "whoever writes to the target has a row of its own there"),
    ("topic", "whoever listens to the target hears of what changes there"),
    ("clock", "the target is looked at by other clocks"),
    ("lap", "what is to be forgotten is looked through from the beginning"),
    ("condemned", "places are condemned in the vault of the source, where the target removes nothing"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_named_once() {
        let mut names: Vec<_> =
            PARTS.iter().map(|part| part.name).chain(LEFT_OUT.iter().map(|(name, _)| *name)).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn columns_are_found_by_name() {
        let payload = Part::named("payload").expect("a part");
        assert_eq!((payload.key_columns(), payload.column("hash"), payload.column("place")), (1, Some(0), Some(1)));
        assert!(payload.column("no").is_none() && Part::named("lease").is_none());
    }
}
