//! What requests a replay would send: to whom, how fast, and whether they are let through.

use maud::{Markup, html};
use redrive::api::breakers::ListBreakers;
use redrive::config::units::written_rate;
use redrive_core::breakers::BreakerState;

use super::plans::Plans;
use crate::app::App;
use crate::look::figures::count;
use crate::pages::fields::Fields;
use crate::pages::parts::name;
use crate::pages::problem::Problem;
use crate::pages::replay_try;
use crate::pages::shell::number_of;
use crate::pages::visitor::Visitor;

/// Targets that are named.
const TARGETS: u32 = 3;

/// The most letters whose targets are counted.
const COUNTED_MAX: u64 = 20_000;

/// Where the requests of a replay would go.
pub struct Requests {
    /// The targets of its letters, most first, with how many letters each has and how its breaker is.
    targets: Vec<(String, u64, BreakerState)>,
    /// Whether there are others.
    more: bool,
    /// How many a second, if there is a limit.
    per_second: Option<f64>,
}

impl Requests {
    /// Finds out where requests would go, if that is soon found out.
    pub async fn of(app: &App, visitor: &Visitor, fields: &Fields, plans: &Plans) -> Result<Option<Self>, Problem> {
        let (redrive, plan) = (app.redrive(), plans.base());
        if plan.included == 0 || plan.matched > COUNTED_MAX {
            return Ok(None);
        }
        let selection = replay_try::selection(app, visitor, fields).await?;
        let mut found = redrive.targets_of(&selection, TARGETS + 1).await?;
        let more = found.len() > TARGETS as usize;
        found.truncate(TARGETS as usize);
        let breakers = redrive.ask_all(ListBreakers::default(), &visitor.caller.to_api()).await?;
        let breakers: Vec<_> = breakers.into_iter().map(|detail| detail.view).collect();
        let state = |target: &str| {
            let own = breakers.iter().filter(|known| known.target == target);
            let own = own.filter(|known| plan.pipelines.contains_key(&known.pipeline));
            own.map(|known| known.breaker.state).find(|state| *state != BreakerState::Closed)
        };
        let targets = found.into_iter().filter_map(|(target, letters)| {
            let target = target?;
            let state = state(&target).unwrap_or(BreakerState::Closed);
            Some((target, letters, state))
        });
        let setting = app.setting();
        let rates = plans.pipelines().map(|name| setting.config.pipeline.get(name)?.http.per_second);
        let rates: Vec<Option<f64>> = rates.collect();
        let per_second = rates.first().copied().flatten().filter(|_| rates.len() == 1);
        Ok(Some(Self { targets: targets.collect(), more, per_second }))
    }

    /// Where so many requests go, of a replay with so many letters.
    pub fn shown(&self, requests: u64, letters: u64) -> Markup {
        let is_one = self.targets.len() == 1 && !self.more;
        html! {
            p.fact {
                (number_of(usize::try_from(requests).unwrap_or(usize::MAX), "request", "requests"))
                @if self.targets.is_empty() { "." }
                @else {
                    @if requests < letters && !is_one { "; all these letters are of " } @else { " to " }
                    @for (at, (target, letters, state)) in self.targets.iter().enumerate() {
                        @if at > 0 { ", " }
                        (name(target)) @if !is_one { " (" (count(*letters as i64)) ")" }
                        @if let Some(rate) = self.per_second.filter(|_| is_one) { " at " (written_rate(rate)) }
                        ", " (breaker(*state))
                    }
                    @if self.more { ", and others" }
                    @if let Some(rate) = self.per_second.filter(|_| !is_one) { "; each at " (written_rate(rate)) }
                    "."
                }
            }
        }
    }
}

const fn breaker(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "breaker closed",
        BreakerState::Open => "breaker open: they wait",
        BreakerState::HalfOpen => "breaker half open: a few go at a time",
    }
}
