//! Handing on: a job that is done may bring others into being, for its own pipeline or for those that its pipeline names. They are
//! written with the settlement that says that it is done, so that nothing can come between.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{JobId, PipelineName};
use crate::jobs::{Input, LeasedJob, NewJob, Origin, check_key};
use crate::time::Timestamp;

/// The most jobs that one job may hand on.
pub const HANDED_ON_MAX: usize = 10_000;

/// What the origin of a job is called that one from the network handed on.
pub const ORIGIN_KIND: &str = "hand_on";

/// A job that is to be handed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOn {
    /// The pipeline it is for; that of the job that hands it on if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<PipelineName>,
    /// What it is about.
    pub input: Input,
    /// Its key: else the one of its input, or else one made of the job that hands it on and its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl HandedOn {
    /// A job for the pipeline of the one that hands it on.
    pub const fn new(input: Input) -> Self {
        Self { pipeline: None, input, key: None }
    }

    /// The same for another pipeline.
    pub fn to(self, pipeline: PipelineName) -> Self {
        Self { pipeline: Some(pipeline), ..self }
    }

    /// The same with a key.
    pub fn with_key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }
}

/// The pipelines that a pipeline may hand on to, each with the target that all of its jobs have, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    /// The target of its own jobs.
    pub own_target: Option<String>,
    /// The others, with theirs.
    pub others: BTreeMap<PipelineName, Option<String>>,
}

/// A job that is accepted with the settlement of the one that handed it on.
#[derive(Clone, Debug, PartialEq)]
pub struct HandedJob {
    /// The pipeline it is for.
    pub pipeline: PipelineName,
    /// The job.
    pub job: NewJob,
}

/// The jobs that a job hands on, if it may: to its own pipeline and to those that are named. They have their identities from
/// it, and belong to its round. Else says why not.
pub fn handed_jobs(
    parent: &LeasedJob,
    receivers: &Receivers,
    handed_on: Vec<HandedOn>,
    now: Timestamp,
) -> Result<Vec<HandedJob>, String> {
    if handed_on.len() > HANDED_ON_MAX {
        let jobs = handed_on.len();
        return Err(format!(
            "it hands on {jobs} tasks, at most {HANDED_ON_MAX} are allowed: hand on fewer that hand on the others"
        ));
    }
    let handed = handed_on.into_iter().enumerate();
    handed.map(|(place, handed)| handed_job(parent, receivers, handed, (place, now))).collect()
}

fn handed_job(
    parent: &LeasedJob,
    receivers: &Receivers,
    handed: HandedOn,
    (place, now): (usize, Timestamp),
) -> Result<HandedJob, String> {
    let pipeline = handed.pipeline.unwrap_or_else(|| parent.pipeline.clone());
    let own = &parent.pipeline;
    let target = match receivers.others.get(&pipeline) {
        _ if pipeline == *own => &receivers.own_target,
        Some(target) => target,
        None => return Err(format!("it hands on to pipeline {pipeline}: name that in hand_on of pipeline {own}")),
    };
    let mut job = NewJob::from_input(JobId::new(now, bits(parent.lease.job, place)), handed.input, now);
    if target.is_some() {
        job.target.clone_from(target);
    }
    let given = handed.key.filter(|key| !key.is_empty()).or(job.key);
    let key = given.unwrap_or_else(|| format!("{}/{place}", parent.lease.job));
    check_key(&key).map_err(|unfit| format!("it hands on a task whose key {unfit}"))?;
    job.key = Some(key);
    job.round.clone_from(&parent.round);
    // What a job hands on is made of what it is about.
    job.origin = parent.is_from_network().then(|| Origin::over_network(ORIGIN_KIND));
    Ok(HandedJob { pipeline, job })
}

/// The random part of a handed-on job's id: that of no other place, and of no other parent, also if the parents' ids follow each
/// other.
fn bits(parent: JobId, place: usize) -> u128 {
    let hash = blake3::Hasher::new().update(parent.as_bytes()).update(&(place as u64).to_be_bytes()).finalize();
    let mut bits = [0; 16];
    bits.copy_from_slice(&hash.as_bytes()[..16]);
    u128::from_be_bytes(bits)
}

/// The pipelines from which jobs may come to a pipeline, by way of others too: it has nothing left to do only if they have not.
pub fn feeders<'a>(
    pipeline: &PipelineName,
    all: &'a [(PipelineName, Vec<PipelineName>)],
) -> BTreeSet<&'a PipelineName> {
    let mut found = BTreeSet::new();
    let mut reached = vec![pipeline];
    while let Some(to) = reached.pop() {
        for (from, _) in all.iter().filter(|(_, hand_on)| hand_on.contains(to)) {
            if found.insert(from) {
                reached.push(from);
            }
        }
    }
    found
}

/// Splits a command's answer into the result and the jobs that it hands on, which are in its field `enqueue`.
///
/// Everything beside `enqueue` is the result. If there is only a field `result`, its value is. Returns an error that names
/// the index of the first job that cannot be read.
pub fn take_apart(answer: Value) -> Result<(Value, Vec<HandedOn>), String> {
    let Value::Object(mut fields) = answer else { return Ok((answer, Vec::new())) };
    let Some(jobs) = fields.shift_remove("enqueue") else { return Ok((fields.into(), Vec::new())) };
    let jobs = read_jobs(jobs)?;
    let result = match fields.len() {
        0 => Value::Null,
        1 if fields.contains_key("result") => fields.remove("result").unwrap_or_default(),
        _ => fields.into(),
    };
    Ok((result, jobs))
}

fn read_jobs(jobs: Value) -> Result<Vec<HandedOn>, String> {
    let Value::Array(jobs) = jobs else { return Err("enqueue is not a list of tasks".to_owned()) };
    let read = |(index, job): (usize, Value)| {
        if !job.is_object() {
            return Err(format!("enqueue[{index}] is not an object with an input"));
        }
        serde_json::from_value(job).map_err(|error| format!("enqueue[{index}] cannot be read: {error}"))
    };
    jobs.into_iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::jobs::Tally;
    use crate::settlements::tests::job;

    const fn now() -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000)
    }

    fn handed(value: Value) -> HandedOn {
        serde_json::from_value(value).expect("a job")
    }

    #[test]
    fn what_a_job_from_the_network_hands_on_counts_as_from_the_network() {
        let handed = |origin| {
            let parent = LeasedJob { origin, ..job(Tally::default()) };
            let jobs = handed_jobs(&parent, &Receivers::default(), vec![HandedOn::new(Input::new())], now());
            jobs.expect("handed on").remove(0).job.origin
        };
        assert_eq!(handed(None), None);
        assert_eq!(handed(Some(Origin::here("import"))), None);
        assert!(handed(Some(Origin::over_network("api"))).is_some_and(|origin| origin.is_from_network()));
    }

    #[test]
    fn jobs_have_their_identity_from_the_one_that_hands_them_on() {
        let parent = LeasedJob { round: Some("monday".parse().expect("a name")), ..job(Tally::default()) };
        let jobs = [
            json!({"input": {"url": "https://shop.example/1"}}),
            json!({"input": {"key": "own"}}),
            json!({"pipeline": "other", "input": {"n": 3}, "key": "given"}),
        ];
        let others = BTreeMap::from([("other".parse().expect("a name"), Some("provider".to_owned()))]);
        let receivers = Receivers { own_target: None, others };
        let made = handed_jobs(&parent, &receivers, jobs.clone().map(handed).to_vec(), now()).expect("it may");
        let keys: Vec<_> = made.iter().map(|handed| handed.job.key.clone().expect("a key")).collect();
        assert_eq!(keys, [format!("{}/0", parent.lease.job), "own".into(), "given".into()]);
        assert_eq!(made[0].job.target.as_deref(), Some("shop.example"));
        assert_eq!(made[2].job.target.as_deref(), Some("provider"), "the target that all jobs there have");
        let fixed = Receivers { own_target: Some("api".to_owned()), ..Receivers::default() };
        let made_here = handed_jobs(&parent, &fixed, vec![handed(jobs[0].clone())], now()).expect("it may");
        assert_eq!(made_here[0].job.target.as_deref(), Some("api"));
        assert_eq!((made[0].pipeline.as_str(), made[2].pipeline.as_str()), ("p", "other"));
        assert!(made.iter().all(|handed| handed.job.round == parent.round), "they belong to its round");
        assert!(made[0].job.id != made[1].job.id && made[1].job.id != made[2].job.id);
    }

    #[test]
    fn no_two_jobs_get_one_id_though_their_parents_have_followed_each_other() {
        let mut parent = job(Tally::default());
        let mut ids = BTreeSet::new();
        for random in 0..20 {
            parent.lease.job = JobId::new(now(), random);
            let jobs = (0..20).map(|n| handed(json!({"input": {"n": n}}))).collect();
            let made = handed_jobs(&parent, &Receivers::default(), jobs, now()).expect("it may");
            ids.extend(made.iter().map(|handed| handed.job.id));
        }
        assert_eq!(ids.len(), 400);
    }

    #[test]
    fn jobs_come_from_far_and_in_circles() {
        let name = |name: &str| name.parse::<PipelineName>().expect("a name");
        let all = [("list", &["item"][..]), ("item", &["image", "list"]), ("image", &[]), ("alone", &[])]
            .map(|(from, to)| (name(from), to.iter().map(|to| name(to)).collect::<Vec<_>>()));
        let of = |to: &str| feeders(&name(to), &all).into_iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(of("image"), ["item", "list"]);
        assert_eq!(of("list"), ["item", "list"]);
        assert!(of("alone").is_empty());
    }

    #[test]
    fn only_pipelines_that_are_named_and_not_too_many() {
        let parent = job(Tally::default());
        let other = vec![handed(json!({"pipeline": "other", "input": {}}))];
        let refused = handed_jobs(&parent, &Receivers::default(), other, now()).expect_err("refused");
        assert!(refused.contains("pipeline other") && refused.contains("hand_on of pipeline p"), "{refused}");
        let many = vec![handed(json!({"input": {}})); HANDED_ON_MAX + 1];
        assert!(handed_jobs(&parent, &Receivers::default(), many, now()).expect_err("refused").contains("10000"));
        let long = vec![handed(json!({"input": {}, "key": "k".repeat(513)}))];
        assert!(handed_jobs(&parent, &Receivers::default(), long, now()).is_err());
    }

    #[test]
    fn everything_beside_the_jobs_of_an_answer_is_its_result() {
        for result in [json!({"result": {"enqueue": []}}), json!([{"enqueue": []}]), json!({"result": 3}), json!(null)]
        {
            assert_eq!(take_apart(result.clone()), Ok((result, Vec::new())));
        }
        for (beside, result) in [
            (json!({}), json!(null)),
            (json!({"result": 7}), json!(7)),
            (json!({"n": 1}), json!({"n": 1})),
            (json!({"result": 7, "n": 1}), json!({"result": 7, "n": 1})),
        ] {
            let mut answer = beside.clone();
            answer["enqueue"] = json!([{"input": {"n": 1}}]);
            let (found, jobs) = take_apart(answer).expect("understood");
            assert_eq!((found, jobs.len()), (result, 1), "{beside}");
        }
        assert_eq!(take_apart(json!({"enqueue": []})), Ok((json!(null), Vec::new())));
    }

    #[test]
    fn jobs_that_cannot_be_read_are_named_by_their_index() {
        for (jobs, named) in [
            (json!([{"input": {}}, {"input": 3}]), "enqueue[1]"),
            (json!([{"input": {}}, "b"]), "enqueue[1]"),
            (json!([[{}]]), "enqueue[0]"),
            (json!([{"input": {}, "pipelin": "x"}]), "pipelin"),
            (json!("tomorrow"), "not a list"),
            (json!(null), "not a list"),
        ] {
            let refused = take_apart(json!({"n": 1, "enqueue": jobs})).expect_err("not understood");
            assert!(refused.contains(named), "{refused}");
        }
    }
}
