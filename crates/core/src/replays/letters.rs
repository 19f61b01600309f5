//! Which dead letters a replay takes, from what it works on each, and what a plan says about it. A store finds the facts; what
//! follows from them is decided here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Exclusion, ReplayMode};
use crate::dead::Gate;
use crate::failures::Reason;
use crate::ids::{PipelineName, TryId};
use crate::jobs::{Input, edited, supplies};

/// Letters that are chosen in one step, at most: each step is a transaction, and nobody waits for more than one of them.
pub const CHOSEN_AT_ONCE_MAX: u32 = 1_000;

/// What is known of a letter's saved payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SavedPayload {
    /// It is whole and can be read here.
    Kept,
    /// There is none, or its bytes are gone.
    Gone,
    /// Its bytes could not be kept.
    Lost,
    /// It waits in the spool of another machine.
    Elsewhere,
    /// Only its beginning was kept.
    Cut,
}

impl SavedPayload {
    /// Why a letter cannot be worked on from it.
    const fn exclusion(self) -> Option<Exclusion> {
        match self {
            Self::Kept => None,
            Self::Gone => Some(Exclusion::PayloadGone),
            Self::Lost => Some(Exclusion::PayloadLost),
            Self::Elsewhere => Some(Exclusion::PayloadOnItsWay),
            Self::Cut => Some(Exclusion::PayloadCut),
        }
    }
}

/// All that decides whether and how a letter is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LetterFacts {
    /// Its pipeline.
    pub pipeline: PipelineName,
    /// Why it died.
    pub reason: Reason,
    /// Whether it may be replayed.
    pub gate: Gate,
    /// Whether another replay has it.
    pub claimed: bool,
    /// Its saved payload.
    pub payload: SavedPayload,
    /// How often it was replayed by itself.
    pub auto_replays: u32,
    /// Whether its target's breaker is not closed.
    pub shut: bool,
    /// Whether the try that was named recovered it as it is now.
    pub recovered: bool,
    /// The fields of its input that are lost, and for want of which it may not be replayed; only where that [matters](Wish::asks_for_lost).
    pub lost: Vec<String>,
}

/// The limits of a replay that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automatic {
    /// How often a letter may be replayed so.
    pub times_max: u32,
    /// How many letters at once.
    pub letters_max: u32,
}

/// What is wanted of a replay, as far as it decides about letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// What letters are to be worked on from.
    pub mode: ReplayMode,
    /// Whether letters that failed permanently go too.
    pub force: bool,
    /// The pipelines whose handlers can work from saved payloads.
    #[serde(default)]
    pub able: BTreeSet<PipelineName>,
    /// The limits, if nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<Automatic>,
    /// The most letters that it takes, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub letters_max: Option<u32>,
    /// The try whose recovered letters are wanted, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<TryId>,
    /// The fields of inputs that are supplied: letters that lack nothing else go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supplied: Vec<String>,
    /// Set if letters are retried by name: their attempts do not count towards the cap over all replays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_name: bool,
    /// Whether it was asked for over the network: so were its changes of inputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_network: bool,
}

impl Wish {
    /// A person's wish for a way to work; no handler is known to work from saved payloads.
    pub fn of(mode: ReplayMode) -> Self {
        let (automatic, letters_max, tried, supplied) = (None, None, None, Vec::new());
        let (able, by_name, over_network) = (BTreeSet::new(), false, false);
        Self { mode, force: false, able, automatic, letters_max, tried, supplied, by_name, over_network }
    }

    /// How many letters it has room for, besides those it has.
    pub fn room(&self, chosen: u64) -> u64 {
        let limit = self.letters_max.or(self.automatic.map(|limits| limits.letters_max));
        limit.map_or(u64::MAX, |limit| u64::from(limit).saturating_sub(chosen))
    }

    /// Whether it matters what letters lack: it is supplied, or they are to go all the same.
    pub const fn asks_for_lost(&self) -> bool {
        self.force || !self.supplied.is_empty()
    }

    /// Whether all that a letter lacks is supplied, and it lacks something.
    fn completes(&self, lost: &[String]) -> bool {
        !lost.is_empty() && lost.iter().all(|lost| self.supplied.iter().any(|edit| supplies(edit, lost)))
    }

    /// The reasons whose letters must be looked at closely, because it matters whether their payloads can be read.
    pub fn looks_closely_at(&self) -> Vec<Reason> {
        let all = Reason::ALL.iter().copied();
        match self.mode {
            ReplayMode::Saved => all.collect(),
            ReplayMode::Suited if !self.able.is_empty() => all.filter(|reason| reason.is_about_content()).collect(),
            ReplayMode::Suited | ReplayMode::Refetch => Vec::new(),
        }
    }
}

/// What a letter is worked on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Its saved payload: no network.
    Saved,
    /// Everything anew.
    Anew,
}

/// Decides from what a letter is worked on, or why it is left out.
pub fn treat(facts: &LetterFacts, wish: &Wish) -> Result<Source, Exclusion> {
    if facts.claimed {
        return Err(Exclusion::BeingReplayed);
    }
    // What is not there cannot be forced: it would go with a mask in its place.
    let is_forced = wish.force && facts.lost.is_empty();
    if facts.gate == Gate::Never && !is_forced && !wish.completes(&facts.lost) {
        return Err(Exclusion::GateNever);
    }
    if wish.tried.is_some() && !facts.recovered {
        return Err(Exclusion::NotRecovered);
    }
    let source = source(facts, wish)?;
    let Some(limits) = wish.automatic else { return Ok(source) };
    if facts.gate != Gate::Auto {
        return Err(Exclusion::GateReview);
    }
    if facts.auto_replays >= limits.times_max {
        return Err(Exclusion::ReplayedEnough);
    }
    if facts.shut && source == Source::Anew { Err(Exclusion::BreakerOpen) } else { Ok(source) }
}

/// The saved payload suits a letter that died of what came, if it is whole and the handler can work from it.
fn source(facts: &LetterFacts, wish: &Wish) -> Result<Source, Exclusion> {
    match wish.mode {
        ReplayMode::Saved => facts.payload.exclusion().map_or(Ok(Source::Saved), Err),
        ReplayMode::Refetch => Ok(Source::Anew),
        ReplayMode::Suited => {
            let suits = facts.payload == SavedPayload::Kept
                && facts.reason.is_about_content()
                && wish.able.contains(&facts.pipeline);
            Ok(if suits { Source::Saved } else { Source::Anew })
        }
    }
}

/// A letter as it is sent through its pipeline again.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// Its input, if it was changed.
    pub input: Option<Input>,
    /// Its target.
    pub target: Option<String>,
    /// Whether it goes on where its last attempt was: with the task that was left at a provider.
    pub goes_on: bool,
    /// Whether it runs alone, because it took its process down, or may have.
    pub suspect: bool,
}

/// Decides how a letter is sent, with the fields of its input changed; nothing if the changes do not fit it. A task that was left
/// at a provider is that of the input as it was.
pub fn outgoing(
    (input, target): (&Input, Option<&str>),
    (crashes, suspect): (u32, bool),
    edits: &Input,
    mode: ReplayMode,
) -> Option<Outgoing> {
    let suspect = suspect || crashes > 0;
    if edits.is_empty() {
        let (target, goes_on) = (target.map(str::to_owned), mode != ReplayMode::Refetch);
        return Some(Outgoing { input: None, target, goes_on, suspect });
    }
    let (input, target) = edited(input, edits, target)?;
    Some(Outgoing { input: Some(input), target, goes_on: false, suspect })
}

/// What a replay would send, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayPlan {
    /// Letters that were found.
    pub matched: u64,
    /// Letters that would be sent.
    pub included: u64,
    /// Of those: letters that would be worked on from their saved payloads.
    pub saved: u64,
    /// The others, which need a request or more each.
    pub anew: u64,
    /// Letters that would not be sent, and why.
    pub excluded: BTreeMap<Exclusion, u64>,
    /// Letters that would be sent, by pipeline.
    pub pipelines: BTreeMap<PipelineName, u64>,
    /// Letters that would be sent, by gate.
    pub gates: BTreeMap<String, u64>,
    /// Letters that would be sent, by the reason they died for.
    pub reasons: BTreeMap<Reason, u64>,
}

impl ReplayPlan {
    /// The plan for letters that were counted by what is known of them.
    pub fn of(surveyed: &[(LetterFacts, u64)], wish: &Wish) -> Self {
        let mut plan = Self::default();
        for (facts, letters) in surveyed {
            plan.matched += letters;
            match treat(facts, wish) {
                Ok(source) => plan.include(facts, source, *letters),
                Err(exclusion) => *plan.excluded.entry(exclusion).or_default() += letters,
            }
        }
        plan
    }

    /// Whether a plan for this wish depends on which payloads are there, where this one was made without asking.
    pub fn depends_on_payloads(&self, wish: &Wish) -> bool {
        let closely = wish.looks_closely_at();
        self.reasons.keys().any(|reason| closely.contains(reason))
    }

    fn include(&mut self, facts: &LetterFacts, source: Source, letters: u64) {
        self.included += letters;
        *(if source == Source::Saved { &mut self.saved } else { &mut self.anew }) += letters;
        *self.pipelines.entry(facts.pipeline.clone()).or_default() += letters;
        *self.gates.entry(facts.gate.to_string()).or_default() += letters;
        *self.reasons.entry(facts.reason).or_default() += letters;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> LetterFacts {
        LetterFacts {
            pipeline: "shop".parse().expect("a name"),
            reason: Reason::SchemaValidation,
            gate: Gate::Review,
            claimed: false,
            payload: SavedPayload::Kept,
            auto_replays: 0,
            shut: false,
            recovered: false,
            lost: Vec::new(),
        }
    }

    fn suited() -> Wish {
        Wish { able: BTreeSet::from(["shop".parse().expect("a name")]), ..Wish::of(ReplayMode::Suited) }
    }

    #[test]
    fn each_letter_is_worked_on_from_what_suits_it() {
        assert_eq!(treat(&facts(), &suited()), Ok(Source::Saved));
        let others = [
            LetterFacts { reason: Reason::Timeout, ..facts() },
            LetterFacts { payload: SavedPayload::Gone, ..facts() },
            LetterFacts { payload: SavedPayload::Cut, ..facts() },
            LetterFacts { payload: SavedPayload::Elsewhere, ..facts() },
            LetterFacts { pipeline: "unable".parse().expect("a name"), ..facts() },
        ];
        for other in others {
            assert_eq!(treat(&other, &suited()), Ok(Source::Anew), "{other:?}");
        }
        assert_eq!(treat(&facts(), &Wish::of(ReplayMode::Refetch)), Ok(Source::Anew));
    }

    #[test]
    fn one_way_can_be_forced() {
        let saved = Wish::of(ReplayMode::Saved);
        assert_eq!(treat(&LetterFacts { reason: Reason::Timeout, ..facts() }, &saved), Ok(Source::Saved));
        for (payload, exclusion) in [
            (SavedPayload::Gone, Exclusion::PayloadGone),
            (SavedPayload::Lost, Exclusion::PayloadLost),
            (SavedPayload::Elsewhere, Exclusion::PayloadOnItsWay),
            (SavedPayload::Cut, Exclusion::PayloadCut),
        ] {
            assert_eq!(treat(&LetterFacts { payload, ..facts() }, &saved), Err(exclusion));
        }
    }

    #[test]
    fn what_may_not_go_is_left_out() {
        let claimed = LetterFacts { claimed: true, gate: Gate::Never, ..facts() };
        assert_eq!(treat(&claimed, &suited()), Err(Exclusion::BeingReplayed));
        let never = LetterFacts { gate: Gate::Never, ..facts() };
        assert_eq!(treat(&never, &suited()), Err(Exclusion::GateNever));
        assert_eq!(treat(&never, &Wish { force: true, ..suited() }), Ok(Source::Saved));
        let supplying =
            |fields: &[&str]| Wish { supplied: fields.iter().map(|f| (*f).to_owned()).collect(), ..suited() };
        assert_eq!(treat(&never, &supplying(&["token"])), Err(Exclusion::GateNever), "it lacks nothing");
        let lacking = LetterFacts { lost: vec!["token".into(), "/headers/cookie".into()], ..never };
        assert_eq!(treat(&lacking, &supplying(&["token"])), Err(Exclusion::GateNever));
        assert_eq!(treat(&lacking, &supplying(&["token", "headers"])), Ok(Source::Saved));
        assert_eq!(
            treat(&lacking, &Wish { force: true, ..suited() }),
            Err(Exclusion::GateNever),
            "it has a mask in it"
        );
        assert_eq!(treat(&lacking, &Wish { force: true, ..supplying(&["token", "headers"]) }), Ok(Source::Saved));
    }

    #[test]
    fn of_what_was_tried_only_what_recovered_goes() {
        let tried = Some(TryId::new(crate::time::Timestamp::from_millis(0), 1));
        let wish = Wish { tried, ..Wish::of(ReplayMode::Saved) };
        assert_eq!(treat(&facts(), &wish), Err(Exclusion::NotRecovered));
        assert_eq!(treat(&LetterFacts { recovered: true, ..facts() }, &wish), Ok(Source::Saved));
    }

    #[test]
    fn by_itself_only_what_may_go_goes() {
        let limits = Automatic { times_max: 2, letters_max: 10 };
        let wish = Wish { automatic: Some(limits), ..Wish::of(ReplayMode::Suited) };
        let auto = LetterFacts { gate: Gate::Auto, ..facts() };
        assert_eq!(treat(&auto, &wish), Ok(Source::Anew));
        assert_eq!(treat(&facts(), &wish), Err(Exclusion::GateReview));
        let often = LetterFacts { auto_replays: 2, ..auto.clone() };
        assert_eq!(treat(&often, &wish), Err(Exclusion::ReplayedEnough));
        assert_eq!(treat(&LetterFacts { shut: true, ..auto }, &wish), Err(Exclusion::BreakerOpen));
        assert_eq!((wish.room(7), wish.room(12), suited().room(12)), (3, 0, u64::MAX));
    }

    #[test]
    fn a_task_is_asked_for_unless_the_input_is_another_or_all_is_done_anew() {
        let (input, none) = (Input::from_iter([("n".to_owned(), 1.into())]), Input::new());
        let send = |edits, mode| outgoing((&input, Some("solver")), (0, false), edits, mode);
        assert!(send(&none, ReplayMode::Suited).expect("sent").goes_on);
        assert!(!send(&none, ReplayMode::Refetch).expect("sent").goes_on);
        let edits = Input::from_iter([("n".to_owned(), 2.into())]);
        let sent = send(&edits, ReplayMode::Suited).expect("sent");
        assert_eq!((sent.goes_on, sent.input, sent.target.as_deref()), (false, Some(edits.clone()), Some("solver")));
        let unfit = Input::from_iter([("/n/inside".to_owned(), 2.into())]);
        assert_eq!(send(&unfit, ReplayMode::Suited), None);
        assert!(outgoing((&input, None), (1, false), &none, ReplayMode::Suited).expect("sent").suspect);
    }

    #[test]
    fn a_plan_adds_up() {
        let anew = LetterFacts { payload: SavedPayload::Gone, ..facts() };
        let never = LetterFacts { gate: Gate::Never, ..facts() };
        let plan = ReplayPlan::of(&[(facts(), 57), (anew, 3), (never, 5)], &suited());
        assert_eq!((plan.matched, plan.included, plan.saved, plan.anew), (65, 60, 57, 3));
        assert_eq!(plan.excluded, BTreeMap::from([(Exclusion::GateNever, 5)]));
        assert_eq!(plan.reasons, BTreeMap::from([(Reason::SchemaValidation, 60)]));
    }
}
