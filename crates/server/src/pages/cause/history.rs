//! Why letters are one group, what people said and did about it, and what happened beside it.

use maud::{Markup, html};
use redrive::causes::{CauseMark, Happened};
use redrive::contract::{AlikeCause, CauseDetail, CauseKey};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use crate::look::figures::{count, part_of};
use crate::pages::letter::task::is_seen_by;
use crate::pages::parts::{ago, command, instant, link, name, quoted, text};
use crate::pages::visitor::Visitor;

/// What its letters have in common, and which others look like it.
pub fn why_one_group(visitor: &Visitor, detail: &CauseDetail) -> Markup {
    html! {
        section aria-labelledby="why" {
            div.section-head { h2 id="why" { "Why one group" } }
            @for key in &detail.keys {
                dl.keys {
                    @for part in &key.parts { dt { (part.name) } dd { (text(&part.value)) } }
                    dt { "letters" } dd { (count(key.dead as i64)) " dead, " (count(key.total as i64)) " died of it first" }
                    @if detail.keys.len() > 1 {
                        dt { "key" }
                        dd {
                            code { (key.key) } " "
                            (link(visitor, Role::Operator, &splitting(key, detail), "Split off…", "small plainly", None))
                        }
                    }
                }
            }
            @if !detail.alike.is_empty() {
                h3 { "Similar causes" }
                ul.log {
                    @for other in &detail.alike {
                        li {
                            code { (other.id) }
                            span {
                                a href={ "/causes/" (other.id) } { (text(&other.title)) }
                                " "
                                (link(visitor, Role::Operator, &merging(other, detail), "Merge into this…", "small plainly", None))
                            }
                        }
                    }
                }
            }
            (command(visitor, &format!("redrive cause show {}", quoted(detail.cause.id.as_str()))))
        }
    }
}

/// Where it is asked whether a cause that looks alike becomes part of this one.
fn merging(other: &AlikeCause, detail: &CauseDetail) -> String {
    format!("/causes/{}/change?verb=merge&into={}", other.id, detail.cause.id)
}

/// Where it is asked whether a key that became part of this cause is one of its own again.
fn splitting(key: &CauseKey, detail: &CauseDetail) -> String {
    let of = form_urlencoded::Serializer::new(String::new()).append_pair("of", &key.key).finish();
    format!("/causes/{}/change?verb=split&{of}", detail.cause.id)
}

/// What people said and did, and what happened beside it, newest first.
pub fn notes(visitor: &Visitor, detail: &CauseDetail, marks: &[CauseMark], now: Timestamp) -> Markup {
    let said = detail.notes.iter().map(|note| {
        (note.at, html! { (text(&note.text)) " " span.muted { (name(&note.by.name)) " " (ago(note.at, now)) } })
    });
    // A replay that also had letters of other pipelines is not for everybody's eyes.
    let is_seen = |mark: &&CauseMark| match &mark.what {
        Happened::Replay(replay) => is_seen_by(visitor, replay),
        Happened::Rules(_) | Happened::Resolved => true,
    };
    let happened = marks.iter().filter(is_seen).filter_map(|mark| Some((mark.at, happened(mark)?)));
    let mut log: Vec<(Timestamp, Markup)> = said.chain(happened).collect();
    log.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    html! {
        section aria-labelledby="notes" {
            div.section-head {
                h2 id="notes" { "Notes and history" }
                span.end {
                    (link(visitor, Role::Operator, &format!("/causes/{}/change?verb=note", detail.cause.id), "Add a note", "plainly small", None))
                }
            }
            @if log.is_empty() { p.empty { "Nobody said anything yet." } }
            ul.log { @for (at, what) in log { li { (instant(at, now)) span { (what) } } } }
        }
    }
}

/// What happened beside a cause, in words; what people said of it is among the notes.
fn happened(mark: &CauseMark) -> Option<Markup> {
    match &mark.what {
        Happened::Resolved => None,
        Happened::Rules(version) => Some(html! { "A worker began with rules " code { (short(version)) } }),
        Happened::Replay(replay) => {
            let progress = &replay.progress;
            Some(html! {
                "Replay " a href={ "/replays/" (replay.id) } { (name(&replay.name)) } ": "
                (part_of(progress.recovered as i64, progress.total as i64)) " recovered"
                @if progress.failed > 0 { ", " (count(progress.failed as i64)) " failed again" }
                ", " (replay.state.as_str()) " " span.muted { (name(&replay.actor)) }
            })
        }
    }
}

/// A version of rules, as far as people tell it from others.
pub fn short(version: &DefinitionVersion) -> String {
    version.as_str().chars().take(8).collect()
}
