//! The ways in which the letters of a choice can be sent, each with its plan. All are made of one look at the letters, and a form carries
//! them: what is started is what was agreed to.

use std::collections::BTreeMap;

use redrive::replays::{can_use_saved, wish};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::Input;
use redrive_core::replays::{Exclusion, PlanDrift, ReplayMode, ReplayPlan, Wish};

use crate::app::App;
use crate::pages::fields::Fields;
use crate::pages::problem::Problem;
use crate::pages::replay_try::{self, Newest};
use crate::pages::visitor::Visitor;

/// Letters that are looked at one by one to say how many have a page, where that does not decide what suits them.
const CLOSELY_MAX: u64 = 20_000;

/// A way in which letters can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Each from what suits it.
    Suited,
    /// All from saved pages.
    Saved,
    /// All anew.
    Refetch,
    /// Those that passed the try, from saved pages.
    Passed,
}

impl Way {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Suited => "suited",
            Self::Saved => "saved",
            Self::Refetch => "refetch",
            Self::Passed => "passed",
        }
    }

    /// The way that a form asks for.
    fn of(fields: &Fields) -> Self {
        match (fields.one("only"), fields.one("from")) {
            (Some("passed"), _) => Self::Passed,
            (_, Some("saved")) => Self::Saved,
            (_, Some("refetch")) => Self::Refetch,
            _ => Self::Suited,
        }
    }
}

/// The plans of a choice.
pub struct Plans {
    /// By the way, and whether letters that failed permanently go too.
    all: BTreeMap<(Way, bool), ReplayPlan>,
    /// Letters that failed permanently.
    pub never: u64,
    /// Whether none can go but those that failed permanently.
    pub only_by_force: bool,
    /// Why letters cannot be worked on from saved pages, if a handler cannot.
    pub unusable: Option<String>,
}

impl Plans {
    /// Makes the plans of the letters that a form or an address is about.
    pub async fn of(app: &App, visitor: &Visitor, fields: &Fields, newest: Option<&Newest>) -> Result<Self, Problem> {
        let (redrive, none) = (app.redrive(), Input::new());
        let selection = replay_try::selection(app, visitor, fields).await?;
        let forced = |wish: &Wish| Wish { force: true, ..wish.clone() };
        let rough_wish = Wish::of(ReplayMode::Suited);
        let mut rough = redrive.plan_replay(&selection, &rough_wish).await?;
        let never = rough.excluded.get(&Exclusion::GateNever).copied().unwrap_or_default();
        let only_by_force = never > 0 && rough.included == 0;
        // What keeps those from going is in no index: of very many letters it is found out when they are sent.
        let has_never = never > 0 && (only_by_force || rough.matched <= CLOSELY_MAX);
        if has_never {
            let all = redrive.plan_replay(&selection, &forced(&rough_wish)).await?;
            rough = ReplayPlan { included: rough.included, ..all };
        }
        visitor.caller.check_each(rough.pipelines.keys())?;
        let pipelines = rough.pipelines.keys().map(|name| app.pipeline(name)).collect::<Result<Vec<_>, _>>()?;
        let suited = wish(&pipelines, None, false, &none).map_err(redrive::Error::from)?;
        let unusable = can_use_saved(&pipelines, false).err().map(|error| error.to_string());
        let mut ways = vec![(Way::Suited, suited.clone())];
        ways.push((Way::Refetch, Wish { mode: ReplayMode::Refetch, ..suited.clone() }));
        // Where what suits letters depends on their pages, these are looked at anyway.
        let is_close = selection.filter.reason.is_some_and(|reason| suited.looks_closely_at().contains(&reason));
        if unusable.is_none() && (is_close || rough.matched <= CLOSELY_MAX) {
            let saved = Wish { mode: ReplayMode::Saved, ..suited };
            let tried = newest.filter(|newest| newest.recovered().is_some()).map(|newest| newest.kept.id);
            ways.extend(tried.map(|id| (Way::Passed, Wish { tried: Some(id), ..saved.clone() })));
            ways.push((Way::Saved, saved));
        }
        let also_forced = ways.iter().filter(|_| has_never).map(|(way, wish)| ((*way, true), forced(wish)));
        let plainly = ways.iter().filter(|_| !only_by_force).map(|(way, wish)| ((*way, false), wish.clone()));
        let (names, wishes): (Vec<_>, Vec<_>) = plainly.chain(also_forced).unzip();
        let plans = redrive.plan_replays(&selection, &wishes).await?;
        Ok(Self { all: names.into_iter().zip(plans).collect(), never, only_by_force, unusable })
    }

    /// The plan of a way, without those that failed permanently unless nothing else is there; none where too many letters would have to
    /// be looked at.
    pub fn get(&self, way: Way) -> Option<&ReplayPlan> {
        self.all.get(&(way, self.only_by_force))
    }

    /// The plan of a way with those that failed permanently, if that is another one.
    pub fn forced(&self, way: Way) -> Option<&ReplayPlan> {
        self.all.get(&(way, true)).filter(|_| !self.only_by_force)
    }

    /// What is sent if nothing else is said: each letter from what suits it.
    pub fn base(&self) -> &ReplayPlan {
        const NONE: &ReplayPlan = &ReplayPlan {
            matched: 0,
            included: 0,
            saved: 0,
            anew: 0,
            excluded: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            gates: BTreeMap::new(),
            reasons: BTreeMap::new(),
        };
        self.get(Way::Suited).unwrap_or(NONE)
    }

    /// The pipelines that letters are of.
    pub fn pipelines(&self) -> impl Iterator<Item = &PipelineName> {
        self.base().pipelines.keys()
    }

    /// What a form carries of them.
    pub fn seen(&self) -> String {
        let bare = |plan: &ReplayPlan| ReplayPlan {
            matched: plan.matched,
            included: plan.included,
            saved: plan.saved,
            anew: plan.anew,
            excluded: plan.excluded.clone(),
            ..ReplayPlan::default()
        };
        let all: BTreeMap<String, ReplayPlan> =
            self.all.iter().map(|((way, force), plan)| (named(*way, *force), bare(plan))).collect();
        serde_json::to_string(&all).unwrap_or_default()
    }

    /// The plan that a form asks for, and how it differs from what was seen, if it does.
    pub fn drift(&self, fields: &Fields) -> Option<(&ReplayPlan, PlanDrift)> {
        let (way, force) = (Way::of(fields), fields.one("why").is_some() || self.only_by_force);
        // What passed goes without those that failed permanently, unless nothing else is there.
        let force = if way == Way::Passed { self.only_by_force } else { force && self.all.contains_key(&(way, true)) };
        let now = self.all.get(&(way, force))?;
        let seen: BTreeMap<String, ReplayPlan> = serde_json::from_str(fields.one("seen")?).ok()?;
        let then = seen.get(&named(way, force)).or_else(|| seen.get(&named(way, !force)))?;
        let drift = now.drift_from(then)?;
        Some((now, drift))
    }
}

/// What a plan is called in a form.
fn named(way: Way, force: bool) -> String {
    format!("{}{}", way.as_str(), if force { " force" } else { "" })
}
