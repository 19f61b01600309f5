//! `/causes/{id}`: why, and is it fixed?
//!
//! - `change`: what people do to it; `when`: its hours; `history`: why it is one, what was said and what happened

mod change;
mod history;
mod when;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::causes::{CauseShare, CausesAsked};
use redrive::contract::{CauseDetail, CauseView, ListDead};
use redrive_core::causes::{CauseId, CauseState};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

pub use self::change::{ask, change};
use super::causes::{did, facts};
use super::compare::{self, Sample};
use super::different;
use super::filter::LetterFilter;
use super::letters;
use super::part::{self, part};
use super::parts::{Button, about, button, cause_state, commands, instant, link, name, quoted, text};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::look::figures::{count, counted, part_of, percent};
use crate::routes::causes::compare::{first_with_page, samples};

/// Letters that are shown.
pub const LETTERS: u32 = 8;

/// Causes that need somebody, among which the one before and after is found.
const BESIDE: u32 = 100;

/// What stands beside a cause in the head of its page, each read by itself.
struct Beside {
    /// The version of what people said about it: forms are for that and no other.
    version: u64,
    /// How many tasks died of it, of how many, where that could be read.
    share: Option<CauseShare>,
    /// What was just done to it.
    told: Markup,
    /// Its place among those that need somebody.
    place: Markup,
}

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor, Named(id): Named<CauseId>) -> Result<Response, Problem> {
    let now = app.redrive().now();
    // The version is read first: what others say in between makes it an older one.
    let version = app.redrive().cause_version(&id).await?;
    let detail = app.redrive().store().get_cause(id, now).await?;
    visitor.caller.check(&detail.cause.pipeline)?;
    let cause = &detail.cause;
    let different = async {
        let different = app.redrive().differences(cause).await?;
        Ok(different::section(&visitor, cause, &different))
    };
    // All at once: each has the same time for what it reads.
    let (marks, share, told, place, compared, different, letters) = tokio::join!(
        part::read(async { Ok(app.redrive().cause_marks(&detail).await?) }),
        part::read(async { Ok(app.redrive().cause_share(cause).await?) }),
        part::read(did::told(&app, &visitor, Some(cause.owner.as_deref()))),
        part::read(place(&app, &visitor, cause)),
        part(&visitor, ("broke", "What broke"), compared(&app, &visitor, cause)),
        part(&visitor, ("different", "What is different"), different),
        part(&visitor, ("letters", "Letters"), letter_list(&app, &visitor, cause, now)),
    );
    let marks = marks?;
    let hours = when::section(&app, cause, marks.as_deref().unwrap_or_default(), now);
    let when = part(&visitor, ("when", "When"), hours).await;
    let notes = async { Ok(history::notes(&visitor, &detail, &marks?, now)) };
    let notes = part(&visitor, ("notes", "Notes and history"), notes).await;
    let (told, place) = (told?.unwrap_or_default(), place?.unwrap_or_default());
    let body = html! {
        (head(&visitor, &detail, &Beside { version, share: share?.ok(), told, place }, now))
        (compared)
        (different)
        (when)
        (letters)
        div.halves { (history::why_one_group(&visitor, &detail)) (notes) }
    };
    let title = crate::look::foreign::cut(&detail.cause.title, 60);
    shell::show(
        &app,
        &visitor,
        Page { place: Place::Causes, title: &title, pipeline: Some(&detail.cause.pipeline), body },
    )
    .await
}

/// Where a cause stands among those that need somebody, with links to the ones beside it.
async fn place(app: &App, visitor: &Visitor, cause: &CauseView) -> Result<Markup, Problem> {
    let covers = |name: &PipelineName| visitor.caller.covers(name);
    let asked = CausesAsked { limit: BESIDE, ..CausesAsked::default() };
    let (needy, more) = app.redrive().list_causes_of(covers, asked, true).await?;
    let Some(at) = needy.iter().position(|one| one.id == cause.id) else { return Ok(html! {}) };
    let beside = |at: Option<usize>, sign: &str, label: &str| {
        let other = at.and_then(|at| needy.get(at));
        html! {
            @if let Some(other) = other {
                " " a href={ "/causes/" (other.id) } aria-label=(label) title=(text_of(&other.title)) { (sign) }
            }
        }
    };
    Ok(html! {
        span {
            (at + 1) " of " (needy.len()) @if more { "+" } " that need you"
            (beside(at.checked_sub(1), "‹ previous", "Previous cause that needs you"))
            (beside(Some(at + 1), "next ›", "Next cause that needs you"))
        }
    })
}

fn text_of(title: &str) -> String {
    crate::look::foreign::cut(title, 120)
}

fn head(visitor: &Visitor, detail: &CauseDetail, beside: &Beside, now: Timestamp) -> Markup {
    let cause = &detail.cause;
    html! {
        div.crumbs { span { a href="/causes" { "Causes" } " / " code { (cause.id) } } (beside.place) }
        div.head #head {
            h1 { (cause_state(cause.state)) (text(&cause.title)) }
            ul.facts {
                li { (facts(cause)) }
                li { @match &cause.owner { Some(owner) => { "owner " (name(owner)) } None => { "no owner" } } }
                @if let (CauseState::Muted, Some(mute)) = (cause.state, &detail.mute) {
                    li {
                        "muted"
                        @if let Some(until) = mute.until { " until " (instant(until, now)) }
                        @if let Some(rate) = mute.per_hour { " until " (rate) " die in an hour" }
                    }
                }
            }
            (beside.told)
        }
        dl.figures #figures {
            div { dt { "Dead" } dd { (count(cause.dead as i64)) } }
            div {
                dt { "With saved pages" }
                dd { (count(cause.saved as i64)) " " small { "of " (count(cause.dead as i64)) } }
            }
            (died(cause, beside.share, now))
            div {
                dt { "First, last death" }
                dd { (instant(cause.first_seen, now)) " " small { "to " (instant(cause.last_seen, now)) } }
            }
        }
        (actions(visitor, cause, beside.version))
    }
}

/// How many tasks died of it, each once, of how many that came to their end, and what became of them.
fn died(cause: &CauseView, share: Option<CauseShare>, now: Timestamp) -> Markup {
    // What was imported did not die here: of no task there is no share.
    let share = share.filter(|share| share.died.whole > 0);
    let since_first = share.is_some_and(|share| share.died.part == cause.total);
    html! {
        div {
            dt { "Died of it" }
            dd {
                @match share {
                    Some(share) => {
                        (part_of(share.died.part as i64, share.died.whole as i64)) " "
                        small {
                            "tasks (" (percent(share.died.value())) ") from " (instant(share.since, now))
                            " to " (instant(share.until, now))
                        }
                    }
                    None => { (count(cause.total as i64)) " " small { "in all" } }
                }
                br;
                small {
                    @if share.is_some() && !since_first { (count(cause.total as i64)) " in all; " }
                    (count(cause.recovered as i64)) " recovered, " (count(cause.discarded as i64)) " discarded"
                    @if cause.refailed > 0 { ", " (counted(cause.refailed as i64, "failure", "failures")) " again in replays" }
                }
            }
        }
    }
}

fn actions(visitor: &Visitor, cause: &CauseView, version: u64) -> Markup {
    let (id, action) = (cause.id.as_str(), format!("/causes/{}/change", cause.id));
    let new = format!("/replays/new?cause={id}");
    let can_try = cause.dead > 0 && cause.saved > 0;
    html! {
        div.actions.page-actions.under #actions {
            @if can_try { (link(visitor, Role::Operator, &format!("{new}#step-2"), "Try a fix", "primary", Some("t"))) }
            @if cause.dead > 0 {
                (link(visitor, Role::Operator, &new, &format!("Replay {}…", count(cause.dead as i64)), if can_try { "" } else { "primary" }, Some("r")))
            }
            (changes(visitor, cause, version, ("in-more", true)))
            details.menu {
                summary.button { "More" }
                ul {
                    // What has no room in the bar of a phone.
                    li.narrow { (changes(visitor, cause, version, ("plainly", false))) }
                    (item(visitor, Role::Operator, &format!("{action}?verb=note"), "Add a note…"))
                    (item(visitor, Role::Operator, &format!("{action}?verb=merge"), "Merge into another…"))
                    (item(visitor, Role::Operator, &format!("{action}?verb=split"), "Split…"))
                    @if cause.dead > 0 {
                        (item(visitor, Role::Admin, &format!("/letters/discard?cause={id}"), "Discard its letters…"))
                    }
                }
            }
            (commands(visitor, &commands_of(visitor, cause)))
        }
    }
}

/// An entry of a menu; who may not do it is told why.
fn item(visitor: &Visitor, role: Role, href: &str, label: &str) -> Markup {
    html! {
        li {
            @match visitor.lacks(role) {
                None => a href=(href) { (label) },
                Some(why) => { button.plainly disabled { (label) } span.fact { (why) } }
            }
        }
    }
}

/// What can be taken back: whose it is, whether it is heard of, whether it is over.
fn changes(visitor: &Visitor, cause: &CauseView, version: u64, (class, with_keys): (&str, bool)) -> Markup {
    let version = version.to_string();
    let action = format!("/causes/{}/change", cause.id);
    let form = |label: &'static str, fields: &[(&str, &str)], key: &'static str| {
        let key = Some(key).filter(|key| with_keys && !key.is_empty());
        let fields: Vec<_> = fields.iter().copied().chain([("version", version.as_str())]).collect();
        button(visitor, &Button { action: &action, label, role: Role::Operator, fields: &fields, class, key })
    };
    let me = visitor.caller.name();
    html! {
        @if cause.owner.as_deref() == Some(me) { (form("Give back", &[("verb", "assign")], "")) }
        @else {
            (form("Assign me", &[("verb", "assign"), ("owner", me)], "a"))
        }
        @match cause.state {
            CauseState::Muted => (form("Unmute", &[("verb", "unmute")], "m")),
            _ => (link(visitor, Role::Operator, &format!("{action}?verb=mute"), "Mute…", class, with_keys.then_some("m"))),
        }
        @match cause.state {
            CauseState::Resolved => (form("Reopen", &[("verb", "reopen")], "e")),
            _ => (form("Resolve", &[("verb", "resolve")], "e")),
        }
    }
}

/// What somebody would type to do what can be done now.
fn commands_of(visitor: &Visitor, cause: &CauseView) -> Vec<(&'static str, String)> {
    let (id, me) = (quoted(cause.id.as_str()), visitor.caller.name());
    let mut lines = Vec::new();
    if cause.dead > 0 && cause.saved > 0 {
        lines.push(("Try a fix", format!("redrive replay try --cause {id}")));
    }
    if cause.dead > 0 {
        lines.push(("Replay", format!("redrive replay start --cause {id} --detach")));
    }
    lines.push(match cause.owner.as_deref() == Some(me) {
        true => ("Give back", format!("redrive cause assign {id}")),
        false => ("Assign me", about(&format!("redrive cause assign {id}"), me, "")),
    });
    lines.push(match cause.state {
        CauseState::Muted => ("Unmute", format!("redrive cause unmute {id}")),
        _ => ("Mute", format!("redrive cause mute {id} --until 24h")),
    });
    lines.push(match cause.state {
        CauseState::Resolved => ("Reopen", format!("redrive cause reopen {id}")),
        _ => ("Resolve", format!("redrive cause resolve {id}")),
    });
    lines
}

/// The page of one of its letters beside the last one that worked.
async fn compared(app: &App, visitor: &Visitor, cause: &CauseView) -> Result<Markup, Problem> {
    let samples = samples(app, cause).await?;
    let asked = visitor.query().one("sample").and_then(|sample| sample.parse::<usize>().ok());
    let asked = asked.unwrap_or_else(|| first_with_page(&samples));
    let at = asked.clamp(1, samples.len().max(1));
    let Some(letter) = samples.get(at - 1) else { return Ok(html! {}) };
    let sample = Sample { cause: &cause.id, letters: &samples, at, all: cause.dead };
    compare::section(app, visitor, letter, (Some(sample), &format!("/replays/new?cause={}", cause.id))).await
}

async fn letter_list(app: &App, visitor: &Visitor, cause: &CauseView, now: Timestamp) -> Result<Markup, Problem> {
    let filter = redrive::contract::DeadFilter { cause: Some(cause.id.clone()), ..Default::default() };
    let asked = ListDead { with_failures: true, ..ListDead::newest(filter, LETTERS) };
    let letters = app.redrive().store().list_dead(asked).await?.items;
    Ok(html! {
        section aria-labelledby="letters" {
            div.section-head {
                h2 id="letters" { "Letters" }
                span.fact #letters-fact { (part_of(letters.len() as i64, cause.dead as i64)) ", newest first" }
                span.end { a href={ "/letters?cause=" (cause.id) } { "All " (count(cause.dead as i64)) } }
            }
            @if letters.is_empty() { p.empty { "No letter is dead of it any more." } }
            @else { (letters::table(visitor, &letters, &LetterFilter::of_cause(cause), now, None)) }
        }
    })
}
