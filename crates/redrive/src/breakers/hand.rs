//! What people do to breakers: close them, hold targets, have a probe go. Workers of every process hear of it within moments.

use redrive_core::actors::Actor;
use redrive_core::breakers::{Breaker, BreakerState, BreakerTurn, BreakerView, NextBreaker, turned};
use redrive_core::ids::PipelineName;
use redrive_core::seen::Version;
use redrive_core::time::Timestamp;
use redrive_store::contract::TurnBreaker;

use super::TURNS_MAX;
use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};

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

/// The version of what people did to a breaker: whether it is closed, and by whom it is held. What it does by itself changes none of it.
pub fn hand_version(breaker: Option<&Breaker>) -> Version {
    let open = breaker.filter(|breaker| breaker.state != BreakerState::Closed);
    Version::of(&(open.is_some(), open.and_then(|breaker| breaker.held_by.as_ref())))
}

/// The most targets that an error names.
const NAMED_MAX: usize = 10;

/// A target as one of these breakers knows it: people write hosts in any case.
pub fn spelled(breakers: &[BreakerView], typed: &str) -> String {
    let mut known = breakers.iter().map(|view| view.target.as_str());
    if known.clone().any(|target| target == typed) {
        return typed.to_owned();
    }
    known.find(|target| target.eq_ignore_ascii_case(typed)).unwrap_or(typed).to_owned()
}

impl Redrive {
    /// A target as breakers know it: people write hosts in any case.
    pub async fn breaker_target(&self, typed: &str) -> Result<String, Error> {
        Ok(spelled(&self.list_breakers(None).await?, typed))
    }

    /// Turns the breakers of a target: of one pipeline, or of all whose breaker is not closed; a hold is for all pipelines there
    /// are, until a time that is to come. Says in which.
    pub async fn turn_breakers(
        &self,
        target: &str,
        pipeline: Option<&PipelineName>,
        turn: &BreakerTurn,
        by: &Actor,
    ) -> Result<Vec<PipelineName>, Error> {
        self.turn_breakers_as_seen(target, pipeline, turn, by, None).await
    }

    /// The same, only if nobody turned it since it was seen; see [`hand_version`].
    pub async fn turn_breakers_as_seen(
        &self,
        target: &str,
        pipeline: Option<&PipelineName>,
        turn: &BreakerTurn,
        by: &Actor,
        seen: Option<&Version>,
    ) -> Result<Vec<PipelineName>, Error> {
        if let Some(until) = turn.over(self.now()) {
            return Err(BreakerError::Over(until).into());
        }
        let pipelines = match (turn, pipeline) {
            (BreakerTurn::Hold(_), Some(name)) => vec![name.clone()],
            (BreakerTurn::Hold(_), None) => self.store.ledgers().await?.into_keys().collect(),
            (BreakerTurn::Close | BreakerTurn::Probe, _) => self.shut_for(target, pipeline).await?,
        };
        if pipelines.is_empty() {
            return Err(BreakerError::NoPipeline.into());
        }
        for name in &pipelines {
            self.turn_breaker((name, target), turn, by, seen).await?;
        }
        Ok(pipelines)
    }

    /// The pipelines in which a target's breaker is not closed.
    async fn shut_for(&self, target: &str, pipeline: Option<&PipelineName>) -> Result<Vec<PipelineName>, Error> {
        let mut open = self.list_breakers(pipeline).await?;
        open.retain(|view| view.breaker.state != BreakerState::Closed);
        let found: Vec<_> =
            open.iter().filter(|view| view.target == target).map(|view| view.pipeline.clone()).collect();
        if found.is_empty() {
            let mut open: Vec<_> = open.into_iter().map(|BreakerView { target, .. }| target).collect();
            open.dedup();
            open.truncate(NAMED_MAX);
            return Err(BreakerError::NotOpen { target: target.to_owned(), open }.into());
        }
        Ok(found)
    }

    /// Turns one breaker. If it moved meanwhile it is looked at again.
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
            if seen.is_some_and(|seen| *seen != hand_version(row.breaker.as_ref())) {
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
