//! The page that broke beside the last one that worked: on the page of a cause, and of a letter. Other views than the frames show what is
//! foreign as text only.

mod diff;
mod fields;
mod frames;

use std::sync::Arc;

use maud::{Markup, html};
use redrive::compare::{CandidateCounts, ComparedPage, Comparison};
use redrive_core::causes::CauseId;
use redrive_core::dead::DeadLetter;
use redrive_core::good::{Pairing, url_shape};

pub use self::frames::rendered;
use super::parts::{clock, column, columns, name, text, views, with_query};
use super::problem::Problem;
use super::visitor::Visitor;
use crate::app::App;
use crate::counted::candidates;
use crate::look::figures::{count, span};
use crate::routes::causes::compare::compared;

/// How two pages are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    Fields,
    Diff,
    Rendered,
    Headers,
}

impl View {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Fields, "fields", "Fields"),
        (Self::Diff, "diff", "Diff"),
        (Self::Rendered, "rendered", "Rendered"),
        (Self::Headers, "headers", "Headers"),
    ];

    fn asked(visitor: &Visitor) -> Self {
        let query = visitor.query();
        let named = query.one("view").unwrap_or_default();
        Self::ALL.iter().find(|(_, known, _)| *known == named).map_or(Self::Fields, |(view, ..)| *view)
    }

    /// Whether lines that differ are shown.
    const fn has_lines(self) -> bool {
        matches!(self, Self::Fields | Self::Diff)
    }
}

/// Where a letter is among those that can be looked at.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    /// The cause.
    pub cause: &'a CauseId,
    /// Those that can be looked at.
    pub letters: &'a [DeadLetter],
    /// Which, from 1.
    pub at: usize,
    /// How many there are.
    pub all: u64,
}

/// Compares the page of a letter, and shows it. `replay` is where rules can be tried.
pub async fn section(
    app: &App,
    visitor: &Visitor,
    letter: &DeadLetter,
    (sample, replay): (Option<Sample<'_>>, &str),
) -> Result<Markup, Problem> {
    let without = |why| Ok(said_by_letter(visitor, letter, (sample, why)));
    if visitor.caller.check_payloads().is_err() {
        return without("your token may not read payloads");
    }
    let view = View::asked(visitor);
    let comparison = compared(app, letter, view.has_lines()).await?;
    if comparison.broke.is_none() {
        return without("the page that broke was not kept");
    }
    let counted = sample.filter(|_| view == View::Fields && has_candidates(&comparison));
    let counts = counted.map(|sample| candidates(app, sample.cause, &comparison, sample.letters));
    Ok(shown(visitor, letter, &comparison, (view, sample, Trying { replay, counts })))
}

/// Where rules can be tried, and on how many saved pages they match, if that is told: nothing while it is being counted.
struct Trying<'a> {
    replay: &'a str,
    counts: Option<Option<Arc<CandidateCounts>>>,
}

fn has_candidates(comparison: &Comparison) -> bool {
    comparison.fields.iter().filter_map(|field| field.help.as_ref()).any(|help| !help.candidates.is_empty())
}

/// What is known without the page. What was found on it is part of it.
fn said_by_letter(visitor: &Visitor, letter: &DeadLetter, (sample, why): (Option<Sample<'_>>, &str)) -> Markup {
    let Some(mut failure) = letter.failures.iter().flatten().last().cloned() else { return html! {} };
    visitor.caller.strip([&mut failure]);
    html! {
        section aria-labelledby="broke" {
            div.section-head {
                h2 id="broke" { "What broke" } span.fact { (why) }
                @if let Some(sample) = sample { (samples(&visitor.here, sample)) }
            }
            @if failure.misses.is_empty() { pre.code { (crate::look::foreign::harmless(&failure.message)) } }
            @else { (fields::misses(&failure.misses)) }
        }
    }
}

fn shown(
    visitor: &Visitor,
    letter: &DeadLetter,
    comparison: &Comparison,
    (view, sample, trying): (View, Option<Sample<'_>>, Trying<'_>),
) -> Markup {
    let here = visitor.here.clone();
    let missed = comparison.fields.iter().filter(|field| field.broke.miss.is_some()).count();
    let has_diff = comparison.worked.is_some() && comparison.no_diff.is_none() && comparison.why_not.is_none();
    // How much differs is known where lines were compared.
    let facts = |one: View| match one {
        View::Fields if !comparison.fields.is_empty() => format!("{missed} missed of {}", comparison.fields.len()),
        View::Diff if has_diff && view.has_lines() => count(comparison.hunks_count as i64),
        _ => String::new(),
    };
    let tabs = View::ALL.map(|(one, word, label)| {
        let to = with_query(&here, "view", Some(word).filter(|_| one != View::Fields)) + "#broke";
        let fact = facts(one);
        (to, html! { (label) @if !fact.is_empty() { " " b { (fact) } } }, one == view)
    });
    html! {
        section.compare aria-labelledby="broke" {
            div.section-head {
                h2 id="broke" { "What broke" }
                span.fact.cut { (paired(letter, comparison)) }
                @if let Some(sample) = sample { (samples(&here, sample)) }
            }
            (views("Compare as", tabs))
            @if view != View::Diff { (sides()) }
            @if let Some(why) = &comparison.why_not { p.headline.warn { "The page that broke cannot be looked into: " (text(why)) "." } }
            (notes(letter, comparison))
            @match view {
                View::Fields => { (fields::table(comparison, &trying)) (diff::nearest(comparison, &(with_query(&here, "view", Some("diff")) + "#broke"))) }
                View::Diff => (diff::table(comparison)),
                View::Rendered => (frames::both(letter, comparison)),
                View::Headers => (headers(comparison)),
            }
        }
    }
}

/// What has to be known of how the pages were read: by which rules, and of which attempt.
fn notes(letter: &DeadLetter, comparison: &Comparison) -> Markup {
    let broke = comparison.broke.as_ref();
    let then = broke.and_then(|page| page.rules.as_deref());
    let is_read = !comparison.fields.is_empty();
    let now = comparison.rules_now.as_deref().filter(|_| is_read);
    let read_otherwise = now.zip(then).filter(|(now, then)| now != then);
    let saved = comparison.worked.as_ref().and_then(|page| page.rules.as_deref());
    let saved_otherwise = now.zip(saved).filter(|(now, saved)| now != saved).map(|(_, saved)| saved);
    let last = letter.failures.iter().flatten().last().map(|failure| failure.attempt);
    let earlier = broke.and_then(|page| page.attempt).zip(last).filter(|(page, last)| page < last);
    html! {
        @if read_otherwise.is_some() || saved_otherwise.is_some() || earlier.is_some() {
            p.fact {
                @if let Some((now, then)) = read_otherwise {
                    "The page that broke is read by the rules of now (" (version(now)) "); this task died under " (version(then)) ". "
                }
                @if let Some(saved) = saved_otherwise {
                    @if comparison.worked_rules.as_deref() == Some(saved) {
                        "The page that worked is read by the rules that it was saved under (" (version(saved)) "). "
                    } @else {
                        "The page that worked is read by the rules of now: those that it was saved under (" (version(saved)) ") are not known any more. "
                    }
                }
                @if let Some((page, last)) = earlier {
                    "The page is of attempt " (page) ": attempt " (last) ", the last, kept none."
                }
            }
        }
    }
}

/// The beginning of a version, by which people know it.
fn version(version: &str) -> Markup {
    name(&version.chars().take(8).collect::<String>())
}

/// What is said in place of a page that worked.
fn none_kept(comparison: &Comparison) -> Markup {
    match &comparison.none_kept {
        Some(why) => html! { "none is kept: " (why) },
        None => html! { "kept from the next success" },
    }
}

/// Why this pair, and how old the good page is.
fn paired(letter: &DeadLetter, comparison: &Comparison) -> Markup {
    let (Some(worked), Some(pairing)) = (&comparison.worked, comparison.pairing) else {
        return html! { "No page like it that worked: " (none_kept(comparison)) };
    };
    let age = match letter.died_at >= worked.at {
        true => format!("the good page is {} older", span(letter.died_at.since(worked.at))),
        false => format!("the good page came {} later", span(worked.at.since(letter.died_at))),
    };
    let shape = worked.url.as_deref().and_then(url_shape).unwrap_or_default();
    match pairing {
        Pairing::SameAddress => html! { "The same address; " (age) },
        Pairing::SameShape => html! { "Same shape of address, " (name(&shape)) "; " (age) },
    }
}

/// Which of the two pages is shown where there is no room for both.
fn sides() -> Markup {
    html! {
        fieldset.sides {
            legend.vh { "Which page" }
            input type="radio" name="side" id="side-broke" checked;
            label for="side-broke" { "Page that broke" }
            input type="radio" name="side" id="side-worked";
            label for="side-worked" { "Last that worked" }
        }
    }
}

fn samples(here: &str, sample: Sample<'_>) -> Markup {
    let to = |at: usize| with_query(here, "sample", Some(&at.to_string())) + "#broke";
    let (listed, all) = (sample.letters.len() as i64, sample.all as i64);
    html! {
        span.end.fact.turn {
            "sample " (sample.at) " of " @if all > listed { "the newest " (count(listed)) ", " (count(all)) " in all " } @else { (count(all)) " " }
            @if sample.at > 1 { a.button.small href=(to(sample.at - 1)) rel="prev" aria-label="Newer sample" { "‹" } }
            @else { span.button.small.off aria-hidden="true" { "‹" } }
            @if sample.at < sample.letters.len() { a.button.small href=(to(sample.at + 1)) rel="next" aria-label="Older sample" { "›" } }
            @else { span.button.small.off aria-hidden="true" { "›" } }
        }
    }
}

/// What is above a page: which, when, how long.
fn caption(page: &ComparedPage) -> Markup {
    let path = page
        .url
        .as_deref()
        .and_then(|url| url.split_once("://")?.1.split_once('/'))
        .map(|(_, path)| format!("/{path}"));
    html! {
        @if let Some(path) = path { (name(&crate::look::foreign::cut(&path, 48))) " · " }
        (clock(page.at)) " · " (kib(page.payload.size_bytes))
        @if let Some(attempt) = page.attempt { " · attempt " (attempt) }
        @if let Some(rules) = &page.rules { " · rules " (version(rules)) }
    }
}

fn kib(bytes: u64) -> String {
    if bytes < 1_024 { format!("{bytes} B") } else { format!("{:.1} KiB", bytes as f64 / 1_024.0) }
}

/// The headers of both.
fn headers(comparison: &Comparison) -> Markup {
    let of = |page: Option<&ComparedPage>| -> Vec<(String, String)> {
        let Some(page) = page else { return Vec::new() };
        let status = page.payload.response.status.map(|status| ("status".to_owned(), status.to_string()));
        let headers =
            page.payload.response.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        status.into_iter().chain(headers).collect()
    };
    let (broke, worked) = (of(comparison.broke.as_ref()), of(comparison.worked.as_ref()));
    let mut names: Vec<&String> = broke.iter().chain(&worked).map(|(name, _)| name).collect();
    names.sort_unstable_by_key(|name| (name.as_str() != "status", name.as_str()));
    names.dedup();
    let values = |headers: &[(String, String)], wanted: &str| {
        let found: Vec<&str> =
            headers.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect();
        found.join(", ")
    };
    html! {
        @if names.is_empty() { p.empty { "No headers were kept." } }
        @else {
            table.headers role="table" {
                (columns(&[column("Header"), column("Page that broke"), column("Last page that worked")]))
                tbody role="rowgroup" {
                    @for one in names {
                        @let (here, there) = (values(&broke, one), values(&worked, one));
                        tr.changed[here != there && comparison.worked.is_some()] role="row" {
                            th role="rowheader" scope="row" { (name(one)) }
                            td.f-broke role="cell" { @if here.is_empty() { span.muted { "none" } } @else { (text(&here)) } }
                            td.f-worked role="cell" { @if there.is_empty() { span.muted { "none" } } @else { (text(&there)) } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_cut_between_characters() {
        assert_eq!(version("0123456789").into_string(), "<bdi>01234567</bdi>");
        assert_eq!(version("äöüäöüäöü").into_string(), "<bdi>äöüäöüäö</bdi>");
        assert_eq!(version("v1").into_string(), "<bdi>v1</bdi>");
    }
}
