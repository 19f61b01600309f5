//! From what a letter can be sent again, as a plan for it says.

use axum::Json;
use axum::extract::State;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::replays::Exclusion;
use serde_json::json;

use super::super::acts::asked;
use super::super::problem::Problem;
use super::super::replay_new::excluded;
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::Body;
use crate::routes::replays::start;

/// Whether a letter can be worked on from its saved page, and if not, why.
pub struct Ways(Result<(), Option<String>>);

impl Ways {
    /// Plans for a letter; what cannot be planned is left to who retries it.
    pub async fn of(app: &App, visitor: &Visitor, letter: &DeadLetter) -> Self {
        if letter.payload.is_none() {
            return Self(Err(None));
        }
        Self(planned(app, visitor, letter).await.unwrap_or_else(|error| Err(Some(error.message().to_owned()))))
    }

    /// Whether it can.
    pub const fn saved(&self) -> bool {
        self.0.is_ok()
    }

    /// Why it cannot, though it has a page.
    pub fn why_not(&self) -> Option<&str> {
        self.0.as_ref().err()?.as_deref()
    }
}

async fn planned(app: &App, visitor: &Visitor, letter: &DeadLetter) -> Result<Result<(), Option<String>>, Problem> {
    let force = letter.gate == Gate::Never;
    let wanted: start::Asked =
        asked(json!({ "letters": { "ids": [letter.id.to_string()] }, "from": "saved", "force": force }))?;
    let Json(plan) = start::plan(State(app.clone()), visitor.caller.clone(), Body(wanted)).await?;
    Ok(match plan.excluded.keys().next() {
        None => Ok(()),
        // It is so from whatever it is sent.
        Some(Exclusion::BeingReplayed) => Err(None),
        Some(exclusion) => Err(Some(excluded(*exclusion).to_owned())),
    })
}
