//! Runs operations on breakers: people list them, close them, hold targets and let probes go. Workers of every process hear of it within
//! moments.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_api::breakers::{
    BreakerDetail, CloseBreaker, HeldBreakers, HoldBreaker, ListBreakers, ProbeBreaker, TurnedBreakers,
};
use redrive_api::{Page, RequestError, Target};
use redrive_core::actors::Actor;
use redrive_core::breakers::{Breaker, BreakerState, BreakerTurn, BreakerView, HeldBy, NextBreaker, turned};
use redrive_core::ids::PipelineName;
use redrive_core::seen::Version;
use redrive_core::state::JobState;
use redrive_core::time::Timestamp;
use redrive_store::contract::{JobFilter, ListJobs, TurnBreaker};

use super::TURNS_MAX;
use crate::access::Authorized;
use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};
use crate::run::Run;

crate::run::list_operations![ListBreakers, HoldBreaker, CloseBreaker, ProbeBreaker];

impl Run<ListBreakers> for Redrive {
    async fn run(&self, request: ListBreakers, caller: &Authorized<'_>) -> Result<Page<BreakerDetail>, Error> {
        let mut views = self.store.list_breakers().await?;
        views.retain(|view| request.pipeline.as_ref().is_none_or(|only| *only == view.pipeline));
        let row = |view: BreakerView| BreakerDetail { version: version_of(Some(&view.breaker)), view };
        Ok(Page::new(views.into_iter().map(row), &request.page, caller)?)
    }
}

impl Run<HoldBreaker> for Redrive {
    async fn run(&self, request: HoldBreaker, caller: &Authorized<'_>) -> Result<HeldBreakers, Error> {
        let HoldBreaker { target, pipeline, until, why, version } = request;
        let (now, by) = (self.asked_at(), caller.actor.clone());
        let until = until.map(|until| until.resolve(now));
        let turn = BreakerTurn::Hold(HeldBy { by, why: why.map(Into::into), until });
        if let Some(until) = turn.over(now) {
            return Err(BreakerError::Over(until).into());
        }
        let Matched { target, views } = self.matched(&target, (pipeline.as_ref(), version.as_ref()), caller).await?;
        let pipelines = match &pipeline {
            Some(name) => vec![name.clone()],
            None => self.store.ledgers().await?.into_keys().collect(),
        };
        if pipelines.is_empty() {
            return Err(BreakerError::NoPipeline.into());
        }
        self.turn_each((&pipelines, &target), &turn, &caller.actor, version.as_ref()).await?;
        let was_open = |name: &PipelineName| views.iter().any(|view| is_open(view, &target) && view.pipeline == *name);
        let opened = pipelines.iter().filter(|name| !was_open(name)).cloned().collect();
        let is_queued = self.is_queued(&target, pipeline).await;
        Ok(HeldBreakers { target, pipelines, opened, until, is_queued })
    }
}

impl Run<CloseBreaker> for Redrive {
    async fn run(&self, request: CloseBreaker, caller: &Authorized<'_>) -> Result<TurnedBreakers, Error> {
        let CloseBreaker { target, pipeline, version } = request;
        self.turn_open(&target, (pipeline.as_ref(), version.as_ref()), &BreakerTurn::Close, caller).await
    }
}

impl Run<ProbeBreaker> for Redrive {
    async fn run(&self, request: ProbeBreaker, caller: &Authorized<'_>) -> Result<TurnedBreakers, Error> {
        let ProbeBreaker { target, pipeline, version } = request;
        self.turn_open(&target, (pipeline.as_ref(), version.as_ref()), &BreakerTurn::Probe, caller).await
    }
}

/// Why a breaker cannot be turned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BreakerError {
    /// It is closed, or there is no such target.
    #[error("no breaker of {target} is open{}", listed(.open))]
    NotOpen {
        /// The target.
        target: String,
        /// The targets whose breakers are.
        open: Vec<String>,
    },
    /// Others turned it since it was seen.
    #[error("the breaker of {0} was changed by others since you saw it: look at it again")]
    SeenOtherwise(String),
    /// Others turned it again and again meanwhile.
    #[error("the breaker of {0} moved meanwhile: try again")]
    Moved(String),
    /// There is no pipeline to hold a target in.
    #[error("there is no pipeline yet whose tasks could be held")]
    NoPipeline,
    /// It is to be held until a time that is over.
    #[error("{0}, until when the target is to be held, is over")]
    Over(Timestamp),
}

impl BreakerError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotOpen { .. } | Self::NoPipeline | Self::SeenOtherwise(_) => ErrorKind::Refused,
            Self::Moved(_) => ErrorKind::Failed,
            Self::Over(_) => ErrorKind::Invalid,
        }
    }
}

fn listed(open: &[String]) -> String {
    match open {
        [] => ", nor is any other".to_owned(),
        open => format!("; open are {}", open.join(", ")),
    }
}

/// Returns the version of what people did to a breaker: whether it is closed, and by whom it is held. What it does by itself changes
/// none of it.
fn version_of(breaker: Option<&Breaker>) -> Version {
    let open = breaker.filter(|breaker| breaker.state != BreakerState::Closed);
    Version::of(&(open.is_some(), open.and_then(|breaker| breaker.held_by.as_ref())))
}

/// The most targets that an error names.
const NAMED_MAX: usize = 10;

/// Time for the search of jobs of a held target. The hold is written by then.
const JOBS_READ_WITHIN: Duration = Duration::from_secs(10);

/// Returns a target in the spelling of these breakers: people write hosts in any case.
fn spelled(breakers: &[BreakerView], typed: &str) -> String {
    let mut known = breakers.iter().map(|view| view.target.as_str());
    if known.clone().any(|target| target == typed) {
        return typed.to_owned();
    }
    known.find(|target| target.eq_ignore_ascii_case(typed)).unwrap_or(typed).to_owned()
}

fn is_open(view: &BreakerView, target: &str) -> bool {
    view.target == target && view.breaker.state != BreakerState::Closed
}

/// A target in the spelling of the store, and the breakers of the pipelines that a request names.
struct Matched {
    target: String,
    views: Vec<BreakerView>,
}

impl Redrive {
    /// Reads what a request to turn breakers is about. Refuses a version without the pipeline whose breaker has it, and an unknown
    /// pipeline.
    async fn matched(
        &self,
        target: &Target,
        (pipeline, seen): (Option<&PipelineName>, Option<&Version>),
        caller: &Authorized<'_>,
    ) -> Result<Matched, Error> {
        if seen.is_some() && pipeline.is_none() {
            let message = "a version is that of one pipeline's breaker: say of which";
            return Err(RequestError::at("pipeline", message).into());
        }
        if let Some(name) = pipeline {
            self.check_known(name, caller).await?;
        }
        let mut views = self.store.list_breakers().await?;
        views.retain(|view| caller.covers(&view.pipeline));
        let target = spelled(&views, target.as_str());
        views.retain(|view| pipeline.is_none_or(|only| *only == view.pipeline));
        Ok(Matched { target, views })
    }

    /// Turns the open breakers of a target.
    async fn turn_open(
        &self,
        target: &Target,
        (pipeline, seen): (Option<&PipelineName>, Option<&Version>),
        turn: &BreakerTurn,
        caller: &Authorized<'_>,
    ) -> Result<TurnedBreakers, Error> {
        let Matched { target, mut views } = self.matched(target, (pipeline, seen), caller).await?;
        if !views.iter().any(|view| is_open(view, &target)) {
            views.retain(|view| view.breaker.state != BreakerState::Closed);
            let open: BTreeSet<_> = views.into_iter().map(|view| view.target).collect();
            let open = open.into_iter().take(NAMED_MAX).collect();
            return Err(BreakerError::NotOpen { target, open }.into());
        }
        views.retain(|view| is_open(view, &target));
        let pipelines: Vec<_> = views.iter().map(|view| view.pipeline.clone()).collect();
        let pauses = self.store.pauses().await?;
        self.turn_each((&pipelines, &target), turn, &caller.actor, seen).await?;
        let paused = pipelines.iter().filter(|name| pauses.contains_key(*name)).cloned().collect();
        Ok(TurnedBreakers { target, pipelines, paused, waiting: views.iter().map(|view| view.held).sum() })
    }

    async fn turn_each(
        &self,
        (pipelines, target): (&[PipelineName], &str),
        turn: &BreakerTurn,
        by: &Actor,
        seen: Option<&Version>,
    ) -> Result<(), Error> {
        for name in pipelines {
            self.turn_breaker((name, target), turn, by, seen).await?;
        }
        Ok(())
    }

    /// Returns whether a job of the target is queued; true if that cannot be read in time.
    async fn is_queued(&self, target: &str, pipeline: Option<PipelineName>) -> bool {
        let (states, target) = (vec![JobState::Queued], Some(target.to_owned()));
        let filter = JobFilter { pipeline, states, target, ..JobFilter::default() };
        let found = self.store.list_jobs(ListJobs { filter, limit: 1, cursor: None });
        match tokio::time::timeout(JOBS_READ_WITHIN, found).await {
            Ok(Ok(page)) => !page.items.is_empty(),
            Ok(Err(_)) | Err(_) => true,
        }
    }

    /// Turns one breaker. If it moved meanwhile it is read again.
    async fn turn_breaker(
        &self,
        (name, target): (&PipelineName, &str),
        turn: &BreakerTurn,
        by: &Actor,
        seen: Option<&Version>,
    ) -> Result<(), Error> {
        for _ in 0..TURNS_MAX {
            let row = self.store.get_breaker(name.clone(), target.to_owned()).await?;
            let now = self.now();
            if seen.is_some_and(|seen| *seen != version_of(row.breaker.as_ref())) {
                return Err(BreakerError::SeenOtherwise(target.to_owned()).into());
            }
            let held_by = row.breaker.as_ref().and_then(|breaker| breaker.held_by.as_ref());
            if matches!(turn, BreakerTurn::Hold(held) if held_by == Some(held)) {
                return Ok(());
            }
            // Somebody was faster, and it is as was wanted.
            let Ok(breaker) = turned(row.breaker.as_ref(), turn, now) else { return Ok(()) };
            let params = TurnBreaker {
                pipeline: name.clone(),
                target: target.to_owned(),
                next: NextBreaker { was: row.version, breaker, folded_to: row.pending_to },
                verb: turn.as_str(),
                why: turn.why().map(str::to_owned),
                by: by.clone(),
                now,
            };
            if self.store.turn_breaker(params).await? {
                return Ok(());
            }
        }
        Err(BreakerError::Moved(target.to_owned()).into())
    }
}
