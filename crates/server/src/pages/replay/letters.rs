//! The letters of a replay, by what became of them.

use std::str::FromStr;

use maud::{Markup, html};
use redrive::contract::{ListRefailed, ListReplayLetters, Page as Listed, ReplayLetter, ReplayView};
use redrive_core::ids::ReplayId;
use redrive_core::replays::{LetterState, Progress};
use redrive_core::time::Timestamp;

use super::super::parts::{
    Glyph, column, columns, further, instant, section_head, state, views, with_query, without_cursor,
};
use super::super::problem::Problem;
use super::super::visitor::Visitor;
use crate::app::App;
use crate::look::figures::count;
use crate::look::tone::Tone;

/// Letters on a page.
const LIMIT: u32 = 50;

/// What became of the letters that somebody looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This.
    Is(LetterState),
    /// They failed for the cause that they had died of.
    SameCause,
    /// They failed for another cause.
    OtherCause,
}

impl Outcome {
    /// What it is called in an address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Is(state) => state.as_str(),
            Self::SameCause => "same_cause",
            Self::OtherCause => "other_cause",
        }
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "same_cause" => Ok(Self::SameCause),
            "other_cause" => Ok(Self::OtherCause),
            text => text.parse().map(Self::Is),
        }
    }
}

/// A page of the letters of a replay.
pub async fn read(
    app: &App,
    id: ReplayId,
    (outcome, cursor): (Option<Outcome>, Option<String>),
) -> Result<Listed<ReplayLetter>, Problem> {
    let store = app.redrive().store();
    let refailed = |same_cause, cursor| ListRefailed { id, same_cause, limit: LIMIT, cursor };
    let state = match outcome {
        Some(Outcome::SameCause) => return Ok(store.list_refailed(refailed(true, cursor)).await?),
        Some(Outcome::OtherCause) => return Ok(store.list_refailed(refailed(false, cursor)).await?),
        Some(Outcome::Is(state)) => Some(state),
        None => None,
    };
    Ok(store.list_replay_letters(ListReplayLetters { id, state, limit: LIMIT, cursor }).await?)
}

/// The outcomes by which letters are looked at: where, what it is called with how many there are, and whether it is the one.
fn tabs(here: &str, p: &Progress, outcome: Option<Outcome>) -> Vec<(String, Markup, bool)> {
    let is = |state| Some(Outcome::Is(state));
    let all = [
        (None, "All", p.total),
        (is(LetterState::Failed), "Failed", p.failed),
        (Some(Outcome::SameCause), "Same cause", p.same_cause),
        (Some(Outcome::OtherCause), "Other cause", p.failed.saturating_sub(p.same_cause)),
        (is(LetterState::Recovered), "Recovered", p.recovered),
        (is(LetterState::Running), "Under way", p.running),
        (is(LetterState::Pending), "Not sent yet", p.pending),
        (is(LetterState::Gone), "Gone", p.gone),
        (is(LetterState::Cancelled), "Left dead", p.cancelled()),
    ];
    // Tabs stay where they are while numbers change.
    let is_rare = |each: Option<Outcome>| {
        matches!(
            each,
            Some(Outcome::Is(LetterState::Gone | LetterState::Cancelled) | Outcome::SameCause | Outcome::OtherCause)
        )
    };
    let is_only = |each: Option<Outcome>| each == Some(Outcome::SameCause) && each != outcome;
    let tabs = all.into_iter().filter(|(each, _, letters)| !is_rare(*each) || *letters > 0 || *each == outcome);
    let tabs = tabs.filter(|(each, ..)| !is_only(*each));
    tabs.map(|(each, title, letters)| {
        let place = format!("{}#letters", with_query(here, "outcome", each.map(Outcome::as_str)));
        (place, html! { (title) b { (count(letters as i64)) } }, each == outcome)
    })
    .collect()
}

/// The letters as a table.
pub fn list(
    visitor: &Visitor,
    replay: &ReplayView,
    (letters, outcome): (&Listed<ReplayLetter>, Option<Outcome>),
    now: Timestamp,
) -> Markup {
    let here = without_cursor(&with_query(&visitor.here, "said", None));
    let tabs = tabs(&here, &replay.progress, outcome);
    html! {
        section aria-labelledby="letters" {
            (section_head("letters", "Letters", ""))
            div #replay-tabs { (views("Which letters", tabs)) }
            @if letters.items.is_empty() { p.empty { "No letter of it is like that." } }
            @else {
                table.outcomes role="table" {
                    (columns(&[
                        column("Letter"), column("Outcome"), column("Cause"), column("From"), column("Ended"),
                    ]))
                    tbody role="rowgroup" #replay-letters data-rows=(LIMIT) {
                        @for letter in &letters.items {
                            tr role="row" id={ "letter-" (letter.id) } data-href={ "/letters/" (letter.id) } {
                                th role="rowheader" scope="row" {
                                    a.name href={ "/letters/" (letter.id) } {
                                        @match letter.number {
                                            Some(number) => { "#" (number) } None => { (letter.id) }
                                        }
                                    }
                                }
                                td role="cell" { (outcome_of(letter.state)) }
                                td role="cell" {
                                    @if let Some(cause) = &letter.cause {
                                        a href={ "/causes/" (cause) } { code { (cause) } }
                                    }
                                    @if let Some(after) = letter.cause_after.as_ref().filter(|after| letter.cause.as_ref() != Some(*after)) {
                                        " then " a href={ "/causes/" (after) } { code { (after) } }
                                    }
                                }
                                td role="cell" { @if letter.saved { "saved" } @else { "anew" } }
                                td role="cell" { @if let Some(ended) = letter.ended_at { (instant(ended, now)) } }
                            }
                        }
                    }
                }
                (further(&here, letters.next.as_deref()))
            }
        }
    }
}

fn outcome_of(outcome: LetterState) -> Markup {
    let (picture, tone) = match outcome {
        LetterState::Recovered => (Glyph::Check, Tone::Good),
        LetterState::Failed => (Glyph::Cross, Tone::Bad),
        LetterState::Running => (Glyph::Half, Tone::Plain),
        LetterState::Pending | LetterState::Gone | LetterState::Cancelled => (Glyph::Muted, Tone::Quiet),
    };
    state(outcome.as_str(), picture, tone)
}
