//! Causes, for who holds a [`Redrive`]: what people do to them, the rules by which failures find theirs, and bringing letters
//! to where the rules say.
//!
//! - `history`: what happened beside a cause; `share`: how many tasks died of it, of how many

mod history;
mod share;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::actors::{Actor, Via};
use redrive_core::causes::changes::{Circumstances, change, recovered};
use redrive_core::causes::rules::own_key;
use redrive_core::causes::{CauseChange, CauseEdit, CauseId, CauseRules, CauseSort, CauseState, ID_DIGITS, SplitBy};
use redrive_core::dead::DeadLetter;
use redrive_core::fingerprint::{Fingerprint, of_failure};
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::ledger::dead_letters;
use redrive_core::time::Timestamp;
use redrive_store::contract::{
    CauseChanged, CauseView, ChangeCause, FindCause, ListCauses, ReplayView, ResolveLetters, ResolvedLetter, Unresolved,
};

pub use self::history::{CauseMark, Happened};
pub use self::share::CauseShare;
use crate::answers::first_begun_at;
use crate::engine::Redrive;
use crate::error::Error;

/// How long rules are believed. Whoever settles by older ones does no harm: the letter is resolved anew.
const RULES_HOLD: Duration = Duration::from_secs(1);

/// How often a change is decided anew, because others changed the same or a name was taken.
const TRIES_MAX: u32 = 50;

/// Letters that are resolved anew at once.
const CHUNK: u32 = 500;

/// Which causes are asked for.
#[derive(Clone, Debug, Default)]
pub struct CausesAsked {
    /// Only of this pipeline.
    pub pipeline: Option<PipelineName>,
    /// Only in one of these states; none means any.
    pub states: Vec<CauseState>,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Whether causes without a dead letter are listed too. Those that are resolved have none: who asks for them means them anyway.
    pub all: bool,
    /// In which order.
    pub sort: CauseSort,
    /// At most so many.
    pub limit: u32,
}

/// Causes that were found.
#[derive(Clone, Debug)]
pub struct FoundCauses {
    /// In the order that was asked for.
    pub causes: Vec<CauseView>,
    /// Whether there are more.
    pub more: bool,
    /// Counts the dead letters of the requested pipeline, or of all.
    pub dead: u64,
}

/// Why a dead letter belongs to its cause.
#[derive(Clone, Debug)]
pub struct ExplainedLetter {
    /// The cause.
    pub cause: Option<CauseId>,
    /// What its last failure said.
    pub message: String,
    /// What of that decides, and what was left out because it varies.
    pub print: Fingerprint,
}

impl ExplainedLetter {
    /// Why a letter belongs where it does; nothing if it came without a failure.
    pub fn of(letter: &DeadLetter) -> Option<Self> {
        letter.failures.iter().flatten().last().map(|last| Self {
            cause: letter.cause.clone(),
            message: last.message.clone(),
            print: of_failure(&letter.pipeline, letter.target.as_deref(), last),
        })
    }
}

/// The rules as they were last read, and when that was.
#[derive(Default)]
pub(crate) struct KnownRules(Mutex<Option<(Timestamp, Arc<CauseRules>)>>);

impl KnownRules {
    fn read(&self) -> MutexGuard<'_, Option<(Timestamp, Arc<CauseRules>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rules, if they were read a moment ago. A clock that was set back makes them old, not young.
    fn fresh(&self, now: Timestamp) -> Option<Arc<CauseRules>> {
        let known = self.read();
        let (at, rules) = known.as_ref()?;
        (now >= *at && now.since(*at) < RULES_HOLD).then(|| Arc::clone(rules))
    }
}

impl Redrive {
    /// Causes, in the order that is asked for: by impact, unless another is.
    pub async fn list_causes(&self, asked: CausesAsked) -> Result<FoundCauses, Error> {
        let of = asked.pipeline.clone();
        let (causes, more) = self.read_causes(asked, of.clone().into_iter().collect(), false).await?;
        Ok(FoundCauses { causes, more, dead: dead_letters(&self.store.ledgers().await?, of.as_ref()) })
    }

    /// The same of the pipelines that somebody may see, and if `needy` only those that need somebody; says whether there are more.
    pub async fn list_causes_of(
        &self,
        covers: impl Fn(&PipelineName) -> bool,
        asked: CausesAsked,
        needy: bool,
    ) -> Result<(Vec<CauseView>, bool), Error> {
        let known = self.store.ledgers().await?;
        let is_meant = |name: &PipelineName| covers(name) && asked.pipeline.as_ref().is_none_or(|only| only == name);
        let meant: Vec<PipelineName> = known.keys().filter(|name| is_meant(name)).cloned().collect();
        match (meant.len(), known.len()) {
            (0, _) => Ok((Vec::new(), false)),
            (some, all) => self.read_causes(asked, if some == all { Vec::new() } else { meant }, needy).await,
        }
    }

    async fn read_causes(
        &self,
        asked: CausesAsked,
        pipelines: Vec<PipelineName>,
        needy: bool,
    ) -> Result<(Vec<CauseView>, bool), Error> {
        let CausesAsked { pipeline: _, states, owner, all, sort, limit } = asked;
        let with_empty = all || states.contains(&CauseState::Resolved);
        let (ids, one_more, now) = (Vec::new(), limit.saturating_add(1), self.now());
        let params = ListCauses { ids, pipelines, states, owner, with_empty, needy, sort, limit: one_more, now };
        let mut causes = self.store.list_causes(params).await?;
        let more = causes.len() > limit as usize;
        causes.truncate(limit as usize);
        Ok((causes, more))
    }

    /// Why a dead letter belongs to its cause; nothing if nobody said what it died of.
    pub async fn explain_letter(&self, id: JobId) -> Result<Option<ExplainedLetter>, Error> {
        Ok(ExplainedLetter::of(&self.dead_letter(id).await?))
    }

    /// The rules that people made by splitting causes.
    pub async fn cause_rules(&self) -> Result<Arc<CauseRules>, Error> {
        let rules = Arc::new(self.store.cause_rules().await?);
        *self.rules.read() = Some((self.now(), Arc::clone(&rules)));
        Ok(rules)
    }

    /// The rules as they were a moment ago at most; if they cannot be read, as they were last, so that nothing waits for them.
    pub(crate) async fn known_rules(&self) -> Arc<CauseRules> {
        if let Some(rules) = self.rules.fresh(self.now()) {
            return rules;
        }
        match self.cause_rules().await {
            Ok(rules) => rules,
            Err(error) => {
                tracing::debug!(%error, "the rules of causes could not be read");
                self.rules.read().as_ref().map(|(_, rules)| Arc::clone(rules)).unwrap_or_default()
            }
        }
    }

    /// Does to a cause what somebody asked for; says which cause it is about then. Of a cause that is split, and of a part that is
    /// merged back, all letters are where they belong when this returns.
    pub async fn change_cause(&self, id: &CauseId, wanted: &CauseChange, by: &Actor) -> Result<CauseId, Error> {
        self.change_cause_as_seen(id, wanted, by, None).await
    }

    /// Which version of what people said about a cause there is: a change may be for that and no other.
    pub async fn cause_version(&self, id: &CauseId) -> Result<u64, Error> {
        Ok(self.store.cause_facts(FindCause { id: id.clone(), like: None }).await?.version)
    }

    /// The same, only if nobody changed the cause since a version of it was seen.
    pub async fn change_cause_as_seen(
        &self,
        id: &CauseId,
        wanted: &CauseChange,
        by: &Actor,
        seen: Option<u64>,
    ) -> Result<CauseId, Error> {
        let mut digits = ID_DIGITS;
        let (now, is_again) = first_begun_at().unwrap_or_else(|| (self.now(), false));
        for _ in 0..TRIES_MAX {
            let (edit, about) = self.decide_change(id, wanted, digits).await?;
            if is_again && self.is_noted(&edit, by, now).await? {
                return Ok(about);
            }
            if edit.was.iter().any(|(cause, version)| cause == id && seen.is_some_and(|seen| seen != *version)) {
                return Err(Error::ChangedMeanwhile(id.clone()));
            }
            let changes_rules = edit.rules.is_some();
            let params = ChangeCause { edit, by: by.clone(), now };
            match self.store.change_cause(params).await? {
                CauseChanged::Applied if changes_rules => {
                    while self.resolve_letters().await? {}
                    return Ok(about);
                }
                CauseChanged::Applied => return Ok(about),
                CauseChanged::NameTaken => digits += 1,
                CauseChanged::Stale => {}
            }
        }
        Err(Error::ChangedMeanwhile(id.clone()))
    }

    /// Returns whether this change was applied by an earlier run of the same request.
    async fn is_noted(&self, edit: &CauseEdit, by: &Actor, at: Timestamp) -> Result<bool, Error> {
        let Some(deed) = &edit.deed else { return Ok(false) };
        let detail = self.store.get_cause(deed.cause.clone(), self.now()).await?;
        Ok(detail.notes.iter().any(|note| note.at == at && note.by == *by && note.text == deed.note))
    }

    async fn decide_change(
        &self,
        id: &CauseId,
        wanted: &CauseChange,
        digits: usize,
    ) -> Result<(CauseEdit, CauseId), Error> {
        // The rules are read first: if they change in between, the store refuses.
        let rules = self.cause_rules().await?;
        let like = match wanted {
            CauseChange::Split(SplitBy::Like(like)) => Some(like.clone()),
            _ => None,
        };
        let cause = self.store.cause_facts(FindCause { id: id.clone(), like }).await?;
        let into = match wanted {
            CauseChange::MergeInto(into) => {
                Some(self.store.cause_facts(FindCause { id: into.clone(), like: None }).await?)
            }
            _ => None,
        };
        let given = Circumstances { cause: &cause, into: into.as_ref(), rules: &rules, digits, now: self.now() };
        change(wanted, given).map_err(|why| Error::Unchangeable { cause: cause.id.clone(), why })
    }

    /// Says of causes that they are over, if a replay that somebody asked for left none of their letters dead.
    pub(crate) async fn resolve_recovered(&self, replay: &ReplayView) -> Result<(), Error> {
        for id in self.store.recovered_causes(replay.id).await? {
            let facts = self.store.cause_facts(FindCause { id: id.clone(), like: None }).await?;
            if let Some(wanted) = recovered(&facts, &replay.name, self.now()) {
                self.change_cause(&id, &wanted, &Actor::new(&replay.actor, Via::Automatic)).await?;
            }
        }
        Ok(())
    }

    /// Brings some of the letters that were filed by older rules to where they belong; says whether there may be more.
    pub async fn resolve_letters(&self) -> Result<bool, Error> {
        // The rules are read first: if they change in between, the store refuses.
        let rules = self.cause_rules().await?;
        let Some(unresolved) = self.store.unresolved_letters(CHUNK).await? else { return Ok(false) };
        self.store.resolve_letters(resolved(unresolved, &rules)).await?;
        Ok(true)
    }
}

/// Where letters belong.
fn resolved(unresolved: Unresolved, rules: &CauseRules) -> ResolveLetters {
    let Unresolved { key, was, next, letters } = unresolved;
    let letters = letters.into_iter().map(|letter| {
        let into = rules.resolve(own_key(&key), letter.target.as_deref(), &letter.message);
        ResolvedLetter { id: letter.id, into: (into != key).then(|| into.to_owned()) }
    });
    ResolveLetters { letters: letters.collect(), key, was, next, rules: rules.version }
}
