//! Pipelines as people see them, for who holds a [`Redrive`]: which there are, where they stand, pausing and resuming them.

use std::collections::{BTreeMap, BTreeSet};

use redrive_api::Caller;
use redrive_core::actors::Actor;
use redrive_core::counts::Event;
use redrive_core::holds::Hold;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::{Contents, Pause, PauseWish, paused};
use redrive_core::seen::Version;
use redrive_core::time::Timestamp;
use redrive_store::contract::{EventTotal, ForgetPipeline, SetPause};
use serde::{Deserialize, Serialize};

use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};

/// How often a pause is decided anew, because others changed the same.
const TRIES_MAX: u32 = 50;

/// Why something that was asked of a pipeline cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum PipelineError {
    /// Neither the store nor the configuration knows it.
    #[error("no pipeline {name}{}", listed(.known))]
    Unknown {
        /// The name.
        name: PipelineName,
        /// Those that there are.
        known: Vec<PipelineName>,
    },
    /// It is not paused.
    #[error("pipeline {0} is not paused")]
    NotPaused(PipelineName),
    /// It is paused, so that nothing of it would be done.
    #[error("pipeline {name} is {pause}")]
    Paused {
        /// The pipeline.
        name: PipelineName,
        /// By whom, why and since when.
        pause: Pause,
    },
    /// It is defined, and would be there again at once.
    #[error("pipeline {0} is defined in redrive.toml: remove it there first")]
    Defined(PipelineName),
    /// Workers work on it.
    #[error("pipeline {name} is worked on ({workers} workers): stop them first")]
    WorkedOn {
        /// The pipeline.
        name: PipelineName,
        /// Their number.
        workers: usize,
    },
    /// There is something of it yet.
    #[error("pipeline {name} is not empty: it has {contents}")]
    NotEmpty {
        /// The pipeline.
        name: PipelineName,
        /// Its contents.
        contents: Contents,
    },
    /// It is to be paused until a time that is over.
    #[error("{0}, until when the pipeline is to be paused, is over")]
    Over(Timestamp),
    /// Others paused or resumed it since it was seen.
    #[error("pipeline {name} was changed by others since you saw it: it is {} now", match .pause { Some(pause) => pause.to_string(), None => "not paused".to_owned() })]
    SeenOtherwise {
        /// The pipeline.
        name: PipelineName,
        /// Its pause now.
        pause: Option<Pause>,
    },
    /// Others paused and resumed it again and again meanwhile.
    #[error("pipeline {0} was changed by others meanwhile: try again")]
    ChangedMeanwhile(PipelineName),
}

impl PipelineError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } => ErrorKind::Missing,
            Self::NotPaused(_) | Self::Paused { .. } | Self::SeenOtherwise { .. } => ErrorKind::Refused,
            Self::Defined(_) | Self::WorkedOn { .. } | Self::NotEmpty { .. } => ErrorKind::Refused,
            Self::ChangedMeanwhile(_) => ErrorKind::Failed,
            Self::Over(_) => ErrorKind::Invalid,
        }
    }
}

fn listed(known: &[PipelineName]) -> String {
    match known {
        [] => ": there are none".to_owned(),
        known => format!(": there are {}", known.iter().map(PipelineName::as_str).collect::<Vec<_>>().join(", ")),
    }
}

/// Where a pipeline stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PipelineView {
    /// Its name.
    pub name: PipelineName,
    /// Its ledger.
    #[serde(flatten)]
    pub ledger: Ledger,
    /// Tasks that other programs ran and reported as done: counted, though Redrive never had them.
    #[serde(default)]
    pub done_elsewhere: i64,
    /// Its pause, if somebody paused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// Why a worker cannot work on it, if one cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Hold>,
    /// Workers that work on it.
    pub workers: usize,
    /// Whether the configuration has it.
    pub configured: bool,
    /// The version of its pause, or of there being none: to be sent along with a change, which is refused if others were faster.
    pub version: Version,
}

/// Counts tasks that other programs ran and reported as done, by all that were done of a pipeline and its ledger.
pub(crate) fn done_elsewhere(name: &PipelineName, totals: &[EventTotal], ledger: &Ledger) -> i64 {
    let done = totals.iter().filter(|total| total.pipeline == *name && total.event == Event::Done);
    (done.map(|total| total.count).sum::<i64>() - ledger.done).max(0)
}

impl Redrive {
    /// The pipelines that the store or the configuration knows.
    pub async fn list_pipelines(&self, setting: &Setting) -> Result<Vec<PipelineView>, Error> {
        // Before the ledgers: what is done between the two was done here.
        let totals = self.store.event_totals().await?;
        let (ledgers, mut pauses) = (self.store.ledgers().await?, self.store.pauses().await?);
        let workers = self.store.list_workers().await?;
        let alive: Vec<_> = workers.iter().filter(|worker| worker.alive).collect();
        let configured = setting.config.pipeline.keys();
        let names: BTreeSet<_> = ledgers.keys().chain(configured).chain(pauses.keys()).cloned().collect();
        let view = |name: PipelineName| {
            let mut holds = alive.iter().flat_map(|worker| &worker.holds);
            let runs_it =
                |worker: &&&redrive_store::contract::WorkerView| worker.runs.iter().any(|runs| runs.pipeline == name);
            let ledger = ledgers.get(&name).copied().unwrap_or_default();
            PipelineView {
                done_elsewhere: done_elsewhere(&name, &totals, &ledger),
                ledger,
                version: Version::of(&pauses.get(&name)),
                paused: pauses.remove(&name),
                held: holds.find(|hold| hold.pipeline == name).cloned(),
                workers: alive.iter().filter(runs_it).count(),
                configured: setting.config.pipeline.contains_key(&name),
                name,
            }
        };
        Ok(names.into_iter().map(view).collect())
    }

    /// Where one pipeline stands; an error if neither the store nor the configuration knows it.
    pub async fn find_pipeline(&self, setting: &Setting, name: &PipelineName) -> Result<PipelineView, Error> {
        let all = self.list_pipelines(setting).await?;
        let known = all.iter().map(|view| view.name.clone()).collect();
        let found = all.into_iter().find(|view| view.name == *name);
        Ok(found.ok_or(PipelineError::Unknown { name: name.clone(), known })?)
    }

    /// Refuses a pipeline that neither the store nor the configuration knows. Names those that the caller covers.
    pub(crate) async fn check_known(&self, name: &PipelineName, caller: &Caller) -> Result<(), Error> {
        let (ledgers, pauses, setting) = (self.store.ledgers().await?, self.store.pauses().await?, self.setting());
        let configured = setting.iter().flat_map(|setting| setting.config.pipeline.keys());
        let known: BTreeSet<_> = ledgers.keys().chain(pauses.keys()).chain(configured).collect();
        match known.contains(name) {
            true => Ok(()),
            false => {
                let known = known.into_iter().filter(|name| caller.covers(name)).cloned().collect();
                Err(PipelineError::Unknown { name: name.clone(), known }.into())
            }
        }
    }

    /// Pauses a pipeline: from now on nothing of it is leased, by any worker of any process, whether it came from a file, a retry
    /// or a replay. What runs comes to its end.
    pub async fn pause_pipeline(&self, name: &PipelineName, why: Option<&str>, by: &Actor) -> Result<Pause, Error> {
        let wish = PauseWish { why: why.map(str::to_owned), until: None };
        self.pause_pipeline_with(name, wish, by, None).await
    }

    /// The same for a while: when the time is over, whoever leads lets it go on, within a minute. If it is said what was seen of it, only
    /// if nobody paused or resumed it since.
    pub async fn pause_pipeline_with(
        &self,
        name: &PipelineName,
        wish: PauseWish,
        by: &Actor,
        seen: Option<&Version>,
    ) -> Result<Pause, Error> {
        if let Some(until) = wish.until.filter(|until| *until <= self.now()) {
            return Err(PipelineError::Over(until).into());
        }
        let decide = |was: Option<&Pause>, now| Ok(Some(paused(was, by, wish.clone(), now)));
        let (_, next) = self.set_pause((name, seen), by, decide).await?;
        next.ok_or_else(|| PipelineError::NotPaused(name.clone()).into())
    }

    /// Lets pipelines go on whose pause is over.
    pub(crate) async fn end_pauses(&self) -> Result<(), Error> {
        for (pipeline, pause) in self.store.pauses().await? {
            let now = self.now();
            if pause.is_over(now) {
                let by = Actor::redrive();
                // Who was faster did the same, or paused it anew.
                self.store.set_pause(SetPause { pipeline, was: Some(pause), next: None, by, now }).await?;
            }
        }
        Ok(())
    }

    /// Lets a paused pipeline go on; gives the pause that is over.
    pub async fn resume_pipeline(&self, name: &PipelineName, by: &Actor) -> Result<Pause, Error> {
        self.resume_pipeline_as_seen(name, by, None).await
    }

    /// The same, only if nobody paused or resumed it since it was seen.
    pub async fn resume_pipeline_as_seen(
        &self,
        name: &PipelineName,
        by: &Actor,
        seen: Option<&Version>,
    ) -> Result<Pause, Error> {
        let not_paused = || PipelineError::NotPaused(name.clone());
        let decide = |was: Option<&Pause>, _| was.map(|_| None).ok_or_else(not_paused);
        let (was, _) = self.set_pause((name, seen), by, decide).await?;
        was.ok_or_else(|| not_paused().into())
    }

    /// Forgets a pipeline that has nothing and that nobody works on: it is in no list until something of it is accepted or counted again.
    pub async fn forget_pipeline(
        &self,
        setting: &Setting,
        name: &PipelineName,
        by: &Actor,
    ) -> Result<PipelineView, Error> {
        let view = self.find_pipeline(setting, name).await?;
        if view.configured {
            return Err(PipelineError::Defined(name.clone()).into());
        }
        if view.workers > 0 {
            return Err(PipelineError::WorkedOn { name: name.clone(), workers: view.workers }.into());
        }
        let params = ForgetPipeline { pipeline: name.clone(), by: by.clone(), now: self.now() };
        let contents = self.store.forget_pipeline(params).await?;
        match contents.is_empty() {
            true => Ok(view),
            false => Err(PipelineError::NotEmpty { name: name.clone(), contents }.into()),
        }
    }

    /// Refuses to begin what a pause would not let happen.
    pub async fn check_not_paused<'a>(&self, names: impl IntoIterator<Item = &'a PipelineName>) -> Result<(), Error> {
        let pauses: BTreeMap<PipelineName, Pause> = self.store.pauses().await?;
        let mut names = names.into_iter();
        let now = self.now();
        match names.find_map(|name| pauses.get_key_value(name).filter(|(_, pause)| !pause.is_over(now))) {
            Some((name, pause)) => Err(PipelineError::Paused { name: name.clone(), pause: pause.clone() }.into()),
            None => Ok(()),
        }
    }

    async fn set_pause(
        &self,
        (name, seen): (&PipelineName, Option<&Version>),
        by: &Actor,
        decide: impl Fn(Option<&Pause>, Timestamp) -> Result<Option<Pause>, PipelineError>,
    ) -> Result<(Option<Pause>, Option<Pause>), Error> {
        for _ in 0..TRIES_MAX {
            let (was, now) = (self.store.pauses().await?.remove(name), self.now());
            if !Version::is_seen(seen, &was) {
                return Err(PipelineError::SeenOtherwise { name: name.clone(), pause: was }.into());
            }
            let next = decide(was.as_ref(), now)?;
            if next == was {
                return Ok((was, next));
            }
            let params = SetPause { pipeline: name.clone(), was: was.clone(), next: next.clone(), by: by.clone(), now };
            if self.store.set_pause(params).await? {
                return Ok((was, next));
            }
        }
        Err(PipelineError::ChangedMeanwhile(name.clone()).into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redrive_core::actors::Via;

    use super::*;

    #[tokio::test]
    async fn a_pause_with_an_end_is_over_by_itself() {
        let redrive = Redrive::open("memory:").await.expect("opened");
        let (name, ada) = ("p".parse().expect("a name"), Actor::new("ada", Via::Cli));
        let until = |millis| PauseWish { why: None, until: Some(redrive.now() + Duration::from_millis(millis)) };
        let paused = redrive.pause_pipeline_with(&name, until(60_000), &ada, None).await.expect("paused");
        assert!(paused.to_string().contains(" until "));
        redrive.end_pauses().await.expect("looked");
        assert_eq!(redrive.store.pauses().await.expect("read").len(), 1, "its time is not over");
        let short = until(1);
        redrive.pause_pipeline_with(&name, short.clone(), &ada, None).await.expect("paused");
        while Some(redrive.now()) <= short.until {
            tokio::task::yield_now().await;
        }
        redrive.check_not_paused([&name]).await.expect("it is over");
        redrive.end_pauses().await.expect("ended");
        assert!(redrive.store.pauses().await.expect("read").is_empty());
        let over = redrive.pause_pipeline_with(&name, short, &ada, None).await.expect_err("refused");
        assert!(over.to_string().contains("is over"), "{over}");
    }
}
