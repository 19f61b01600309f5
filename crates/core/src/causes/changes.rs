//! What people do to causes, decided here and handed to the store as steps, with the guard under which they hold.

use std::collections::{HashMap, HashSet};

use super::rules::{CauseRule, CauseRules, Likeness, is_part, part_key};
use super::{CauseId, Mute};
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// What can be done to a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseChange {
    /// Somebody looks after it, or nobody.
    Assign(Option<String>),
    /// Something is said.
    Note(String),
    /// Nobody wants to hear of it for now.
    Mute(Mute),
    /// It is no longer muted.
    Unmute,
    /// It is over. If it comes back it is regressed.
    Resolve(Option<String>),
    /// It is not over.
    Reopen,
    /// It is the same as another: its keys, and all future failures of them, belong to that one.
    MergeInto(CauseId),
    /// Some of it is something else, now and in the future.
    Split(SplitBy),
}

/// Which part of a cause is a cause of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitBy {
    /// One of its keys: a merge taken back.
    Key(String),
    /// The failures that are like that.
    Like(Likeness),
}

/// What people said about a cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Who looks after it.
    pub owner: Option<String>,
    /// When it was said to be over.
    pub resolved_at: Option<Timestamp>,
    /// Whether and until when it is muted.
    pub mute: Option<Mute>,
}

/// A cause as it is when a change of it is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseFacts {
    /// Its id.
    pub id: CauseId,
    /// Grows with every change that people make.
    pub version: u64,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// What people said about it.
    pub said: Said,
    /// When it last killed a job.
    pub last_seen: Timestamp,
    /// Letters that are dead of it.
    pub dead: u64,
    /// Its keys.
    pub keys: Vec<KeyFacts>,
}

/// A key of a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFacts {
    /// The key.
    pub key: String,
    /// The cause that it was made for, if that one became part of this.
    pub origin: Option<CauseId>,
    /// Whether it was a part that was brought back: no failure finds it any more.
    pub retired: bool,
    /// Whether any of its letters is like what was asked for.
    pub fits: bool,
}

impl CauseFacts {
    fn is_over(&self) -> bool {
        self.said.resolved_at.is_some_and(|at| self.last_seen <= at)
    }

    fn live(&self) -> impl Iterator<Item = &KeyFacts> {
        self.keys.iter().filter(|key| !key.retired)
    }
}

/// What a change is decided by.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The cause.
    pub cause: &'a CauseFacts,
    /// The one it is to become part of.
    pub into: Option<&'a CauseFacts>,
    /// The rules there are.
    pub rules: &'a CauseRules,
    /// How long the name of a new cause is.
    pub digits: usize,
    /// The time.
    pub now: Timestamp,
}

/// What is to be written for a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CauseEdit {
    /// Causes and the versions at which they must be, or nothing is written.
    pub was: Vec<(CauseId, u64)>,
    /// The version at which the rules must be, if they are changed.
    pub rules: Option<u64>,
    /// What is done, in order.
    pub steps: Vec<CauseStep>,
    /// What somebody does by that, for the record.
    pub deed: Option<CauseDeed>,
}

/// What somebody did to a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseDeed {
    /// What.
    pub verb: &'static str,
    /// To which cause.
    pub cause: CauseId,
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// In words.
    pub note: String,
}

/// One thing that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseStep {
    /// What people say about a cause.
    Say(CauseId, Said),
    /// A cause comes into being, with a name that nobody has.
    Make(CauseId, PipelineName),
    /// A cause becomes part of another, or is itself again.
    Join(CauseId, Option<CauseId>),
    /// Keys go to a cause.
    Give(Vec<String>, CauseId),
    /// Failures of a key belong to a part of it from now on, which is a key of that cause.
    Rule(CauseRule, CauseId),
    /// A rule is taken back: its part is retired, and its letters go where the other rules say.
    Unrule(CauseRule),
    /// Something is written down.
    Note(CauseId, String),
}

/// Why a change cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchangeable {
    /// A cause cannot become part of itself.
    #[error("it is the same cause")]
    SameCause,
    /// Causes of different pipelines stay apart.
    #[error("they belong to different pipelines")]
    OtherPipeline,
    /// The key is not one of its own.
    #[error("it has no such key")]
    NoSuchKey,
    /// There would be nothing left.
    #[error("it has one key only: it can be split by target or by text")]
    OneKeyOnly,
    /// The same was said before.
    #[error("that was split off already")]
    SplitAlready,
    /// The part would be empty.
    #[error("none of its letters is like that")]
    NothingFits,
    /// It is to be muted until a time that is over.
    #[error("{0}, until when it is to be muted, is over")]
    Over(Timestamp),
}

impl CauseChange {
    /// What it is called in the record of what people did.
    const fn verb(&self) -> &'static str {
        match self {
            Self::Assign(_) => "assign",
            Self::Note(_) => "note",
            Self::Mute(_) => "mute",
            Self::Unmute => "unmute",
            Self::Resolve(_) => "resolve",
            Self::Reopen => "reopen",
            Self::MergeInto(_) => "merge",
            Self::Split(_) => "split",
        }
    }
}

/// What takes a change back, by what people said before it; nothing where nothing does. A mute that is over meanwhile is none.
pub fn taken_back(change: &CauseChange, was: &Said, now: Timestamp) -> Vec<CauseChange> {
    let mute = was.mute.filter(|mute| mute.until.is_none_or(|until| now < until)).map(CauseChange::Mute);
    match change {
        CauseChange::Assign(_) => vec![CauseChange::Assign(was.owner.clone())],
        CauseChange::Mute(_) => vec![mute.unwrap_or(CauseChange::Unmute)],
        CauseChange::Unmute => mute.into_iter().collect(),
        CauseChange::Resolve(_) => std::iter::once(CauseChange::Reopen).chain(mute).collect(),
        CauseChange::Reopen => vec![CauseChange::Resolve(None)],
        CauseChange::Note(_) | CauseChange::MergeInto(_) | CauseChange::Split(_) => Vec::new(),
    }
}

/// Decides what a change means; says which cause it is about then.
pub fn change(change: &CauseChange, given: Circumstances<'_>) -> Result<(CauseEdit, CauseId), Unchangeable> {
    let (edit, about) = decide(change, given)?;
    let note = edit.steps.iter().find_map(|step| if let CauseStep::Note(_, text) = step { Some(text) } else { None });
    let note = note.cloned().unwrap_or_default();
    let (cause, pipeline) = (given.cause.id.clone(), given.cause.pipeline.clone());
    let deed = Some(CauseDeed { verb: change.verb(), cause, pipeline, note });
    Ok((CauseEdit { deed, ..edit }, about))
}

fn decide(change: &CauseChange, given: Circumstances<'_>) -> Result<(CauseEdit, CauseId), Unchangeable> {
    let Circumstances { cause, now, .. } = given;
    let (said, text) = match change {
        CauseChange::Assign(owner) => {
            let text =
                owner.as_ref().map_or_else(|| "assigned to nobody".to_owned(), |who| format!("assigned to {who}"));
            (Said { owner: owner.clone(), ..cause.said.clone() }, text)
        }
        CauseChange::Note(text) => (cause.said.clone(), text.clone()),
        CauseChange::Mute(Mute { until: Some(until), .. }) if *until <= now => return Err(Unchangeable::Over(*until)),
        CauseChange::Mute(mute) => (Said { mute: Some(*mute), ..cause.said.clone() }, muted(mute)),
        CauseChange::Unmute => (Said { mute: None, ..cause.said.clone() }, "no longer muted".to_owned()),
        CauseChange::Resolve(why) => {
            // What died while the clock was ahead does not bring it back.
            let resolved_at = Some(now.max(cause.last_seen));
            let text = why.as_ref().map_or_else(|| "resolved".to_owned(), |why| format!("resolved: {why}"));
            (Said { owner: cause.said.owner.clone(), resolved_at, mute: None }, text)
        }
        CauseChange::Reopen => (Said { resolved_at: None, ..cause.said.clone() }, "reopened".to_owned()),
        CauseChange::MergeInto(_) => return merge(given),
        CauseChange::Split(SplitBy::Key(key)) => return split_key(given, key),
        CauseChange::Split(SplitBy::Like(like)) => return split(given, like),
    };
    let steps = vec![CauseStep::Say(cause.id.clone(), said), CauseStep::Note(cause.id.clone(), text)];
    Ok((CauseEdit { was: vec![(cause.id.clone(), cause.version)], rules: None, steps, deed: None }, cause.id.clone()))
}

/// Whether a note about a cause says that it was resolved.
pub fn is_resolution(note: &str) -> bool {
    note == "resolved" || note.starts_with("resolved: ")
}

/// Says that a cause is over because a replay left none of its letters dead; nothing if it is over already, or is not.
pub fn recovered(cause: &CauseFacts, replay: &str, now: Timestamp) -> Option<CauseChange> {
    let resolves = cause.dead == 0 && !cause.is_over() && cause.last_seen <= now;
    resolves.then(|| CauseChange::Resolve(Some(format!("replay {replay:?} left none of its letters dead"))))
}

fn muted(mute: &Mute) -> String {
    let until = mute.until.map(|until| format!(" until {until}")).unwrap_or_default();
    let rate = mute.per_hour.map(|rate| format!(" until it kills {rate} tasks an hour")).unwrap_or_default();
    format!("muted{until}{rate}")
}

fn merge(given: Circumstances<'_>) -> Result<(CauseEdit, CauseId), Unchangeable> {
    let Circumstances { cause, rules, .. } = given;
    let into = given.into.filter(|into| into.id != cause.id).ok_or(Unchangeable::SameCause)?;
    if cause.pipeline != into.pipeline {
        return Err(Unchangeable::OtherPipeline);
    }
    let said = Said { resolved_at: resolved_together(cause, into), ..into.said.clone() };
    let mut steps = vec![
        CauseStep::Give(cause.keys.iter().map(|key| key.key.clone()).collect(), into.id.clone()),
        CauseStep::Join(cause.id.clone(), Some(into.id.clone())),
        CauseStep::Say(into.id.clone(), said),
        CauseStep::Note(into.id.clone(), format!("{} merged into this one", cause.id)),
    ];
    let keys: Vec<_> = cause.live().chain(into.live()).map(|key| key.key.as_str()).collect();
    let undone = undone(&keys, rules);
    let changes_rules = !undone.is_empty();
    steps.extend(undone.into_iter().map(CauseStep::Unrule));
    let was = vec![(cause.id.clone(), cause.version), (into.id.clone(), into.version)];
    Ok((CauseEdit { was, rules: changes_rules.then_some(rules.version), steps, deed: None }, into.id.clone()))
}

/// When two causes that become one were over: what is not over does not become so by its name.
fn resolved_together(cause: &CauseFacts, into: &CauseFacts) -> Option<Timestamp> {
    match (cause.is_over(), into.is_over()) {
        (true, true) => cause.said.resolved_at.max(into.said.resolved_at),
        (true, false) => into.said.resolved_at,
        (false, true) => cause.said.resolved_at,
        (false, false) => into.said.resolved_at.or(cause.said.resolved_at),
    }
}

/// Rules between keys that are one cause now: they tell nothing apart any more. A part that has parts of its own elsewhere is
/// kept, because the way to those leads through it.
fn undone(keys: &[&str], rules: &CauseRules) -> Vec<CauseRule> {
    let keys: HashSet<&str> = keys.iter().copied().collect();
    let inside = |rule: &CauseRule| keys.contains(rule.key.as_str()) && keys.contains(rule.into.as_str());
    // How many rules lead on from a key, and which of those that may go lead to it.
    let mut onward: HashMap<&str, usize> = HashMap::new();
    let mut leading: HashMap<&str, Vec<&CauseRule>> = HashMap::new();
    for rule in &rules.rules {
        *onward.entry(&rule.key).or_default() += 1;
        if inside(rule) {
            leading.entry(&rule.into).or_default().push(rule);
        }
    }
    let mut ends: Vec<&str> = leading.keys().filter(|key| !onward.contains_key(*key)).copied().collect();
    ends.sort_unstable();
    let mut undone = Vec::new();
    while let Some(end) = ends.pop() {
        for rule in leading.remove(end).unwrap_or_default() {
            undone.push(rule.clone());
            let left = onward.entry(&rule.key).or_default();
            *left -= 1;
            if *left == 0 {
                ends.push(&rule.key);
            }
        }
    }
    undone
}

/// A key becomes a cause of its own. The cause that it was made for is there again, with all that was said about it.
fn split_key(given: Circumstances<'_>, key: &str) -> Result<(CauseEdit, CauseId), Unchangeable> {
    let cause = given.cause;
    let found = cause.live().find(|known| known.key == key).ok_or(Unchangeable::NoSuchKey)?;
    if cause.live().count() < 2 {
        return Err(Unchangeable::OneKeyOnly);
    }
    let (id, made) = part_cause(given, found.origin.as_ref(), key);
    // Parts of it that were brought back go along.
    let parts = cause.keys.iter().filter(|part| part.retired && is_part(&part.key, key)).map(|part| part.key.clone());
    let keys = std::iter::once(key.to_owned()).chain(parts).collect();
    let mut steps = vec![made, CauseStep::Give(keys, id.clone())];
    steps.extend(told(cause, &id, &format!("key {key}")));
    Ok((CauseEdit { was: vec![(cause.id.clone(), cause.version)], rules: None, steps, deed: None }, id))
}

/// Part of each key that has letters like that becomes a key of another cause.
fn split(given: Circumstances<'_>, like: &Likeness) -> Result<(CauseEdit, CauseId), Unchangeable> {
    let Circumstances { cause, rules, .. } = given;
    let ruled = |key: &KeyFacts| rules.rules.iter().any(|rule| rule.key == key.key && rule.like == *like);
    let fitting: Vec<_> = cause.live().filter(|key| key.fits && !ruled(key)).collect();
    let Some(first) = fitting.first() else {
        return Err(if cause.live().any(ruled) { Unchangeable::SplitAlready } else { Unchangeable::NothingFits });
    };
    let first = part_key(&first.key, like);
    // The same part may have been split off before: then it is that cause again.
    let before = cause.keys.iter().find(|key| key.retired && key.key == first).and_then(|key| key.origin.as_ref());
    let (id, made) = part_cause(given, before, &first);
    let mut steps = vec![made];
    for key in fitting {
        let rule = CauseRule { key: key.key.clone(), like: like.clone(), into: part_key(&key.key, like) };
        steps.push(CauseStep::Rule(rule, id.clone()));
    }
    let what = match like {
        Likeness::Target(target) => format!("target {target}"),
        Likeness::Text(text) => format!("{text:?}"),
    };
    steps.extend(told(cause, &id, &what));
    let was = vec![(cause.id.clone(), cause.version)];
    Ok((CauseEdit { was, rules: Some(rules.version), steps, deed: None }, id))
}

/// The cause of what is split off, and the step by which it is there.
fn part_cause(given: Circumstances<'_>, before: Option<&CauseId>, key: &str) -> (CauseId, CauseStep) {
    match before {
        Some(id) => (id.clone(), CauseStep::Join(id.clone(), None)),
        None => {
            let id = CauseId::of_key(key, given.digits);
            (id.clone(), CauseStep::Make(id, given.cause.pipeline.clone()))
        }
    }
}

fn told(cause: &CauseFacts, part: &CauseId, what: &str) -> [CauseStep; 2] {
    [
        CauseStep::Note(cause.id.clone(), format!("{part} split off: {what}")),
        CauseStep::Note(part.clone(), format!("split off from {}: {what}", cause.id)),
    ]
}

#[cfg(test)]
mod tests;
