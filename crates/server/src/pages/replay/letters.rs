//! The letters of a replay, by what became of them.

use maud::{Markup, html};
use redrive::contract::{Page as Listed, ReplayLetter, ReplayView};
use redrive_core::replays::LetterState;
use redrive_core::time::Timestamp;

use super::super::parts::{
    Glyph, column, columns, further, instant, section_head, state, views, with_query, without_cursor,
};
use super::super::visitor::Visitor;
use crate::look::figures::count;
use crate::look::tone::Tone;

/// The letters as a table.
pub fn list(
    visitor: &Visitor,
    replay: &ReplayView,
    (letters, outcome): (&Listed<ReplayLetter>, Option<LetterState>),
    now: Timestamp,
) -> Markup {
    let here = without_cursor(&with_query(&visitor.here, "said", None));
    let p = &replay.progress;
    let all = [
        (None, "All", p.total),
        (Some(LetterState::Failed), "Failed", p.failed),
        (Some(LetterState::Recovered), "Recovered", p.recovered),
        (Some(LetterState::Running), "Under way", p.running),
        (Some(LetterState::Pending), "Not sent yet", p.pending),
        (Some(LetterState::Gone), "Gone", p.gone),
        (Some(LetterState::Cancelled), "Left dead", p.cancelled()),
    ];
    // Tabs stay where they are while numbers change.
    let is_rare = |each: Option<LetterState>| matches!(each, Some(LetterState::Gone | LetterState::Cancelled));
    let tabs = all.into_iter().filter(|(each, _, letters)| !is_rare(*each) || *letters > 0 || *each == outcome);
    let tabs = tabs.map(|(each, title, letters)| {
        let place = format!("{}#letters", with_query(&here, "outcome", each.map(LetterState::as_str)));
        (place, html! { (title) b { (count(letters as i64)) } }, each == outcome)
    });
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
                    tbody role="rowgroup" #replay-letters data-rows=(super::LIMIT) {
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
