//! Causes, for who holds a [`Redrive`]: the rules by which failures find theirs, and bringing letters to where the rules say.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive_core::causes::CauseRules;
use redrive_core::causes::rules::own_key;
use redrive_core::time::Timestamp;
use redrive_store::contract::{ResolveLetters, ResolvedLetter, Unresolved};

use crate::engine::Redrive;
use crate::error::Error;

/// How long rules are believed. Whoever settles by older ones does no harm: the letter is resolved anew.
const RULES_HOLD: Duration = Duration::from_secs(1);

/// Letters that are resolved anew at once.
const CHUNK: u32 = 500;

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
