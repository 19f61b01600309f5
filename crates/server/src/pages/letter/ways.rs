//! From what a letter can be sent again, and what keeps it from that, as a plan for it says.

use axum::Json;
use axum::extract::State;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::replays::{Exclusion, ReplayPlan};
use serde_json::json;

use super::super::acts::asked;
use super::super::part;
use super::super::problem::Problem;
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::routes::replays::start;

/// From what a letter can be sent again.
pub struct Ways {
    /// Whether it can be worked on from its saved page, and if not, why, where it has one.
    from_saved: Result<(), Option<String>>,
    /// Whether another replay has it: nobody else can send it until that is through with it.
    pub is_taken: bool,
    /// Why it cannot be sent at all as it is.
    pub kept_back: Option<String>,
}

impl Ways {
    /// Plans for a letter; what cannot be planned is left to who retries it.
    pub async fn of(app: &App, visitor: &Visitor, letter: &DeadLetter) -> Self {
        let excluded = async |from| {
            let planned = part::read(planned(app, visitor, letter, from)).await;
            planned.map(|planned| planned.map(|plan| plan.excluded.keys().next().copied()))
        };
        let from_saved = match letter.payload.is_some() {
            false => Err(None),
            true => match excluded("saved").await.and_then(|planned| planned) {
                Ok(None) => return Self { from_saved: Ok(()), is_taken: false, kept_back: None },
                // It is so from whatever it is sent.
                Ok(Some(Exclusion::BeingReplayed | Exclusion::GateNever)) => Err(None),
                Ok(Some(exclusion)) => Err(Some(kept_back(exclusion).to_owned())),
                Err(problem) => Err(Some(problem.message().to_owned())),
            },
        };
        let (is_taken, kept_back) = match excluded("suited").await {
            Ok(Ok(Some(Exclusion::BeingReplayed))) => (true, None),
            Ok(Ok(Some(exclusion))) => (false, Some(kept_back(exclusion).to_owned())),
            // What the store does not answer is left to who retries it.
            Ok(Ok(None) | Err(_)) => (false, None),
            Err(problem) => (false, Some(problem.message().to_owned())),
        };
        Self { from_saved, is_taken, kept_back }
    }

    /// Whether it can be worked on from its saved page.
    pub const fn saved(&self) -> bool {
        self.from_saved.is_ok()
    }

    /// Why it cannot, though it has one.
    pub fn why_not(&self) -> Option<&str> {
        self.from_saved.as_ref().err()?.as_deref()
    }
}

/// The fields that its input lacks: it is not sent without them.
pub fn lost(letter: &DeadLetter) -> &[String] {
    letter.origin.as_ref().map_or(&[], |origin| &origin.lost)
}

/// Whether a letter is sent only against its gate, for a reason. What is not there cannot be forced.
pub fn is_forced(letter: &DeadLetter) -> bool {
    letter.gate == Gate::Never && lost(letter).is_empty()
}

/// What would be sent of a letter, from what somebody means.
pub async fn planned(app: &App, visitor: &Visitor, letter: &DeadLetter, from: &str) -> Result<ReplayPlan, Problem> {
    let force = is_forced(letter);
    let wanted: start::Asked =
        asked(json!({ "letters": { "ids": [letter.id.to_string()] }, "from": from, "force": force }))?;
    let Json(plan) = start::plan(State(app.clone()), visitor.caller.clone(), Body(wanted)).await?;
    Ok(plan)
}

/// Why one letter is not sent.
pub const fn kept_back(exclusion: Exclusion) -> &'static str {
    match exclusion {
        Exclusion::BeingReplayed => "another replay has it",
        Exclusion::GateNever => "it failed permanently (gate never)",
        Exclusion::GateReview => "a person has to ask for it (gate review)",
        Exclusion::PayloadGone => "no saved page is left",
        Exclusion::PayloadLost => "its page could not be kept",
        Exclusion::PayloadOnItsWay => "its page is on its way from another machine",
        Exclusion::PayloadCut => "only the beginning of its page was kept",
        Exclusion::ReplayedEnough => "it was replayed by itself as often as may be",
        Exclusion::BreakerOpen => "its target is held",
        Exclusion::NotRecovered => "the try did not recover it",
    }
}
