//! A job: the unit of work, before it is accepted, while a worker holds it, and as others see it.
//!
//! - `origin`: where it came from
//! - `size`: how large inputs and requests may be

mod origin;
mod size;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::failures::Reason;
use crate::ids::{JobId, LeaseToken, PipelineName, RoundName};
use crate::payloads::Payload;
use crate::proxies::{History, TriedProxy};
use crate::state::JobState;
use crate::time::Timestamp;

pub use self::origin::{ORIGIN_BYTES_MAX, Origin, is_traceparent, supplies};
pub use self::size::{INPUT_BYTES_MAX, InputLimits, InputTooLarge, check_input, count_values, json_bytes, values_max};

/// The JSON object that a job is about.
pub type Input = Map<String, Value>;

/// The longest key a job may have, in bytes.
pub const KEY_BYTES_MAX: usize = 512;

/// Why a key is none that a task can be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitKey {
    /// Indexes have an end.
    #[error("is longer than {KEY_BYTES_MAX} bytes")]
    TooLong,
    /// Not every store keeps zero characters: two keys would be one there.
    #[error("has a zero character")]
    Zero,
}

/// Checks that a task can be known by a key, in any store.
pub fn check_key(key: &str) -> Result<(), UnfitKey> {
    match key {
        long if long.len() > KEY_BYTES_MAX => Err(UnfitKey::TooLong),
        zero if zero.contains('\0') => Err(UnfitKey::Zero),
        _ => Ok(()),
    }
}

/// The longest name of a target, a code or a proxy that is kept, in bytes: they are looked up by it, and indexes have an end.
pub const NAME_BYTES_MAX: usize = 500;

/// A name as it is kept: the beginning of one that is too long.
pub fn kept_name(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let room = NAME_BYTES_MAX - '…'.len_utf8();
        let end = (0..=room).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        name.truncate(end);
        name.push('…');
    }
    name
}

/// A job that asks to be accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// The id it will have, unless its key is known already.
    pub id: JobId,
    /// The round it belongs to, if the tasks of its pipeline are repeated in rounds.
    pub round: Option<RoundName>,
    /// Its identity within the pipeline and the round: a second job of the same key is not accepted.
    pub key: Option<String>,
    /// The host or provider it is about.
    pub target: Option<String>,
    /// What it is about.
    pub input: Input,
    /// Where it came from, if another system handed it over.
    pub origin: Option<Origin>,
    /// When it may be leased first.
    pub due_at: Timestamp,
}

impl NewJob {
    /// A job from an input: the input's own `key` is its key, its `target`, or else the host of its `url`, its target.
    pub fn from_input(id: JobId, input: Input, now: Timestamp) -> Self {
        let (key, target) = (own_key(&input), own_target(&input));
        Self { id, round: None, key, target, input, origin: None, due_at: now }
    }
}

fn own_key(input: &Input) -> Option<String> {
    match input.get("key")? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn own_target(input: &Input) -> Option<String> {
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    let target = match text("target") {
        Some(target) if !target.is_empty() => Some(target.to_owned()),
        _ => text("url").and_then(host_of),
    };
    target.map(kept_name)
}

/// The host of an absolute URL, in lower case, without credentials or port.
pub fn host_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    if scheme.is_empty() || !scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
        return None;
    }
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host_port.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => host_port.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// An input with fields changed: by name, by `a.b` for one inside another, or by JSON pointer; the empty one is the whole input.
/// Nothing if a change does not
/// fit it: a place in a list that is not there, a field of a number. If the target was the input's own, it is that of the
/// new input.
pub fn edited(input: &Input, edits: &Input, target: Option<&str>) -> Option<(Input, Option<String>)> {
    let mut changed = Value::Object(input.clone());
    for (field, value) in edits {
        set(&mut changed, &path_of(field, input), value)?;
    }
    let Value::Object(changed) = changed else { return None };
    let own = own_target(input);
    let target = if own.as_deref() == target { own_target(&changed) } else { target.map(str::to_owned) };
    Some((changed, target))
}

/// The value of a field: by name, by `a.b` for one inside another, or by JSON pointer.
pub fn field<'a>(input: &'a Input, field: &str) -> Option<&'a Value> {
    let path = path_of(field, input);
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(input.get(first.as_str())?, |inside, name| match inside {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        inside => inside.get(name.as_str()),
    })
}

/// Takes a field out of an input, found as [`field`] finds it. What is inside a list is copied.
pub fn take_field(input: &mut Input, name: &str) -> Option<Value> {
    let found = field(input, name)?.clone();
    let path = path_of(name, input);
    let (last, before) = path.split_last()?;
    let inside = before.iter().try_fold(&mut *input, |inside, name| match inside.get_mut(name.as_str())? {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    if let Some(fields) = inside {
        fields.remove(last.as_str());
    }
    Some(found)
}

fn path_of(field: &str, input: &Input) -> Vec<String> {
    if field.is_empty() {
        return Vec::new();
    }
    if let Some(pointer) = field.strip_prefix('/') {
        return pointer.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    }
    let inside = field.split('.').next().is_some_and(|first| input.get(first).is_some_and(Value::is_object));
    match inside && !input.contains_key(field) {
        true => field.split('.').map(str::to_owned).collect(),
        false => vec![field.to_owned()],
    }
}

/// Sets a value inside another, if it fits.
fn set(inside: &mut Value, names: &[String], value: &Value) -> Option<()> {
    let Some((name, rest)) = names.split_first() else {
        *inside = value.clone();
        return Some(());
    };
    match inside {
        Value::Null => {
            *inside = Value::Object(Map::new());
            set(inside, names, value)
        }
        Value::Object(fields) => set(fields.entry(name.as_str()).or_insert(Value::Null), rest, value),
        Value::Array(items) => {
            let at = if name == "-" { items.len() } else { name.parse().ok()? };
            if at == items.len() {
                items.push(Value::Null);
            }
            set(items.get_mut(at)?, rest, value)
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The longest id of a provider's task that is kept, in bytes.
pub const TASK_ID_BYTES_MAX: usize = 512;

/// State of a task that a job left at a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// Its result may come: it is polled.
    #[default]
    Open,
    /// It was not ready in all the time that it had: it is asked for once more, and then another one is submitted.
    Stuck,
    /// The provider is done with it: another one is submitted.
    Spent,
}

/// The progress of a job that left a task at a provider.
pub fn progress_of_task(id: &str) -> Value {
    serde_json::json!({ "task_id": id })
}

/// Returns the progress of a job that left a task in this state at a provider.
pub fn progress_of_task_in(id: &str, state: TaskState) -> Value {
    match state {
        TaskState::Open => progress_of_task(id),
        TaskState::Stuck => serde_json::json!({ "task_id": id, "state": "stuck" }),
        TaskState::Spent => serde_json::json!({ "task_id": id, "state": "spent" }),
    }
}

/// The state of the task that a job's progress tells of.
pub fn task_state_of_progress(progress: &Value) -> TaskState {
    match progress.get("state").and_then(Value::as_str) {
        Some("stuck") => TaskState::Stuck,
        Some("spent") => TaskState::Spent,
        _ => TaskState::Open,
    }
}

/// The task that a job's progress tells of.
pub fn task_of_progress(progress: &Value) -> Option<&str> {
    progress.get("task_id")?.as_str()
}

/// How often a job has been tried, and what is suspected of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Attempts that ended in a verdict, over all replays.
    pub attempts: u32,
    /// Attempts made before the replay under way began.
    pub attempts_before: u32,
    /// Times the job took its process down.
    pub crashes: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// Whether it ran in a worker that died, and must run alone to be judged.
    pub suspect: bool,
    /// Attempts of former retries by name, which do not count towards the cap.
    #[serde(default)]
    pub uncounted: u32,
    /// Set if the replay under way retries letters by name: its attempts do not count towards the cap.
    #[serde(default)]
    pub by_name: bool,
}

impl Tally {
    /// Attempts that count towards the cap over all replays.
    pub const fn counted(&self) -> u32 {
        let under_way = if self.by_name { self.attempts.saturating_sub(self.attempts_before) } else { 0 };
        self.attempts.saturating_sub(self.uncounted).saturating_sub(under_way)
    }

    /// Whether anything has gone wrong with the job before.
    pub const fn tried(&self) -> bool {
        self.attempts > 0 || self.crashes > 0
    }
}

/// A worker's time-limited right to one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The job it is for.
    pub job: JobId,
    /// Known to the holder only.
    pub token: LeaseToken,
    /// Grows with every lease of the job, so that of two of them the later is known. What settles is the token.
    pub epoch: u64,
}

/// As it goes over a network: job, token and epoch, with dots between.
impl fmt::Display for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.job, self.token, self.epoch)
    }
}

impl FromStr for Lease {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let mut parts = text.split('.');
            let (job, token, epoch) = (parts.next()?, parts.next()?, parts.next()?);
            let lease = Self { job: job.parse().ok()?, token: token.parse().ok()?, epoch: epoch.parse().ok()? };
            parts.next().is_none().then_some(lease)
        };
        read().ok_or_else(|| format!("{text:?} is not a lease"))
    }
}

/// A job in the hands of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct LeasedJob {
    /// The right to settle it.
    pub lease: Lease,
    /// Its short number, for people.
    pub number: i64,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// The round it belongs to, if there are rounds.
    pub round: Option<RoundName>,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// Its target, if it has one.
    pub target: Option<String>,
    /// What it is about.
    pub input: Input,
    /// What has happened to it so far.
    pub tally: Tally,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How far an earlier attempt got, if it left word.
    pub progress: Option<Value>,
    /// The saved payload to work from, if it is replayed so.
    pub saved: Option<Payload>,
    /// Whether it is replayed because a policy asked for it, and no person.
    pub automatic: bool,
    /// The proxies through which its earlier attempts failed, oldest first; only where that was asked for.
    pub tried: Vec<TriedProxy>,
    /// Whether it goes to see if its target, whose breaker is not closed, is better.
    pub probe: bool,
    /// Where it came from, if another system handed it over.
    pub origin: Option<Origin>,
    /// Whether its input is not the one that it was accepted with.
    pub edited: bool,
}

impl LeasedJob {
    /// The number of the attempt under way, counted over all replays from 1.
    pub const fn attempt(&self) -> u32 {
        self.tally.attempts.saturating_add(1)
    }

    /// Whether it is to be trusted no more than one that came over the network.
    pub fn is_from_network(&self) -> bool {
        self.origin.as_ref().is_some_and(Origin::is_from_network)
    }

    /// The proxies it has tried.
    pub fn proxies(&self) -> History<'_> {
        History { tried: &self.tried, replay: self.tally.replays }
    }
}

/// A job as lists and `job show` print it, in whatever state it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Its short number, for people: no other job of the store ever has it. Jobs that ended before numbers were given have none.
    pub number: Option<i64>,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// The round it belongs to, if there are rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<RoundName>,
    /// Where it is.
    pub state: JobState,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// Its target, if it has one.
    pub target: Option<String>,
    /// What it is about; not kept once a job is done or discarded.
    pub input: Option<Input>,
    /// Where it came from, if another system handed it over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Attempts that ended in a verdict.
    pub attempts: u32,
    /// Times it took its process down.
    pub crashes: u32,
    /// How often it was replayed.
    pub replays: u32,
    /// Why it failed last, if it did and is not done.
    pub reason: Option<Reason>,
    /// The code it failed with last.
    pub code: Option<String>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it is due, while it is queued.
    pub due_at: Option<Timestamp>,
    /// Whether a breaker holds it.
    pub held: bool,
    /// When it was settled for good: done, dead or discarded.
    pub ended_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(input: Value) -> NewJob {
        let Value::Object(input) = input else { panic!("an object") };
        let now = Timestamp::from_millis(0);
        NewJob::from_input(JobId::new(now, 1), input, now)
    }

    #[test]
    fn a_key_is_one_in_every_store() {
        assert_eq!(check_key(&"k".repeat(KEY_BYTES_MAX)), Ok(()));
        assert_eq!(check_key(&"k".repeat(KEY_BYTES_MAX + 1)), Err(UnfitKey::TooLong));
        assert_eq!((check_key("k\0"), check_key("k\u{2400}")), (Err(UnfitKey::Zero), Ok(())));
    }

    #[test]
    fn a_target_without_end_is_cut() {
        let long = job(json!({"url": format!("https://{}/", "ü".repeat(9_999))})).target.expect("a target");
        assert!(long.len() <= NAME_BYTES_MAX && long.ends_with("ü…"), "{long}");
        assert_eq!(kept_name("shop.example".into()), "shop.example");
    }

    #[test]
    fn identity_and_target_come_from_the_input() {
        let own = job(json!({"key": "a-1", "target": "solver", "url": "https://example.com/"}));
        assert_eq!((own.key.as_deref(), own.target.as_deref()), (Some("a-1"), Some("solver")));
        let plain = job(json!({"key": 7, "url": "https://u:p@Shop.Example.com:8443/p?q=1"}));
        assert_eq!((plain.key.as_deref(), plain.target.as_deref()), (Some("7"), Some("shop.example.com")));
        let none = job(json!({"key": "", "url": "not a url"}));
        assert_eq!((none.key, none.target), (None, None));
    }

    #[test]
    fn fields_are_changed_by_name_and_by_path() {
        let object = |value: Value| match value {
            Value::Object(input) => input,
            _ => panic!("an object"),
        };
        let input = object(json!({"url": "https://old.example/p", "a": {"b": [1, 2]}}));
        let edits = object(json!({"url": "https://new.example/p", "/a/b/1": 9, "/c/d": true}));
        let (changed, target) = edited(&input, &edits, Some("old.example")).expect("it fits");
        assert_eq!(
            Value::Object(changed),
            json!({"url": "https://new.example/p", "a": {"b": [1, 9]}, "c": {"d": true}})
        );
        assert_eq!(target.as_deref(), Some("new.example"));
        assert_eq!(edited(&input, &edits, Some("provider")).expect("it fits").1.as_deref(), Some("provider"));
        let (changed, _) = edited(&input, &object(json!({"/a/b/-": 3, "a.c": 4})), None).expect("it fits");
        assert_eq!(Value::Object(changed), json!({"url": "https://old.example/p", "a": {"b": [1, 2, 3], "c": 4}}));
        for odd in [json!({"/a/b/7": 1}), json!({"/url/x": 1}), json!({"a.b.x": 1})] {
            assert_eq!(edited(&input, &object(odd.clone()), None), None, "{odd}");
        }
        let (changed, target) =
            edited(&input, &object(json!({"": {"url": "https://x.example/"}})), Some("old.example")).expect("it fits");
        assert_eq!(
            (Value::Object(changed), target.as_deref()),
            (json!({"url": "https://x.example/"}), Some("x.example"))
        );
        assert_eq!(edited(&input, &object(json!({"": [1]})), None), None, "an input is an object");
        assert_eq!(field(&input, "a.b"), Some(&json!([1, 2])));
        assert_eq!(field(&input, "/a/b/1"), Some(&json!(2)));
        assert_eq!(field(&input, "a.x"), None);
    }

    #[test]
    fn hosts() {
        assert_eq!(host_of("http://[::1]:80/x").as_deref(), Some("::1"));
        assert_eq!(host_of("https://EXAMPLE.com").as_deref(), Some("example.com"));
        for bad in ["example.com/x", "://x", "https:///x", ""] {
            assert_eq!(host_of(bad), None, "{bad:?}");
        }
    }
}
