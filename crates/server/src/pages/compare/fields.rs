//! What each rule finds on both pages; for one that finds nothing, what still matches and what could be meant.

use maud::{Markup, html};
use redrive::compare::{CandidateCounts, ComparedField, Comparison, Found};
use redrive::handler::http::extract::Help;
use redrive_core::failures::Miss;

use super::{Trying, caption, none_kept};
use crate::look::figures::{counted, part_of};
use crate::look::foreign::harmless;
use crate::look::tone::Tone;
use crate::pages::parts::{Glyph, column, column_num, column_unseen, columns, name, state, text};

/// The table of fields.
pub(super) fn table(comparison: &Comparison, trying: &Trying<'_>) -> Markup {
    if comparison.fields.is_empty() {
        return by_handler(comparison);
    }
    html! {
        table.fields role="table" {
            colgroup { col.f-name; col.f-rule; col.f-type; col; col; }
            thead role="rowgroup" { tr role="row" {
                (column("Field"))
                (column("Rule"))
                th.f-type role="columnheader" scope="col" { "Type" }
                th.f-broke role="columnheader" scope="col" {
                    strong { "Page that broke" } @if let Some(page) = &comparison.broke { (caption(page)) }
                }
                th.f-worked role="columnheader" scope="col" {
                    strong { "Last page that worked" }
                    @match &comparison.worked { Some(page) => (caption(page)), None => (none_kept(comparison)) }
                }
            } }
            tbody role="rowgroup" {
                // What is missed is what people came for.
                @let (missed, found): (Vec<_>, Vec<_>) = comparison.fields.iter().partition(|field| is_missed(field));
                @for field in missed.into_iter().chain(found) { (row(field, comparison.worked.is_some(), trying)) }
            }
        }
    }
}

fn is_missed(field: &ComparedField) -> bool {
    field.broke.miss.is_some()
}

/// A field; `is_kept` says whether there is a page that worked.
fn row(field: &ComparedField, is_kept: bool, trying: &Trying<'_>) -> Markup {
    let is_missed = is_missed(field);
    let (glyph, tone, word) = match (is_missed, &field.broke.value) {
        (true, _) => (Glyph::Cross, Tone::Bad, "missed "),
        (false, Some(_)) => (Glyph::Check, Tone::Good, "found "),
        (false, None) => (Glyph::Muted, Tone::Quiet, "absent, optional: "),
    };
    html! {
        tr.miss[is_missed] role="row" {
            th role="rowheader" scope="row" {
                span.field-name { (state("", glyph, tone)) span.vh { (word) } (name(&field.field)) }
            }
            td.f-rule role="cell" { code.cut title=(field.rule) { (text(&field.rule)) } }
            td.f-type role="cell" { span.muted { (field.kind) } }
            td.f-broke role="cell" { (found(&field.broke)) }
            td.f-worked role="cell" {
                @match (&field.worked, is_kept) {
                    (Some(worked), _) => {
                        (found(worked))
                        @if let Some(rule) = &field.worked_rule { " " span.muted { "by " code { (text(rule)) } } }
                    }
                    (None, true) => { span.muted { "not known" } }
                    (None, false) => { span.muted { "none kept" } }
                }
            }
        }
        @if let Some(help) = field.help.as_ref().filter(|_| is_missed) { (helped(field, help, trying)) }
    }
}

fn found(found: &Found) -> Markup {
    let matches = counted(found.matches as i64, "match", "matches");
    html! {
        span.cut {
            span class={ "hits" @if found.miss.is_some() { " bad-text" } } { (matches) } " "
            @match (&found.value, &found.miss) {
                (Some(value), _) => { span title=(harmless(value)) { (text(value)) } }
                (None, Some(miss)) => { b.bad-text { "missed" } " " span.muted { (name(miss)) (instead(found)) } }
                (None, None) => { span.muted { "nothing, optional" } }
            }
        }
    }
}

/// What is there in place of what was asked for.
fn instead(found: &Found) -> Markup {
    html! {
        @if let Some(why) = &found.why { ", " (text(why)) }
        @if let Some(instead) = &found.instead { ", found “" (text(instead)) "”" }
    }
}

fn helped(field: &ComparedField, help: &Help, trying: &Trying<'_>) -> Markup {
    let kind = field.kind.split(',').next().unwrap_or("text");
    let whole = field.rule.split("::").next().unwrap_or_default().trim();
    html! {
        tr.help role="row" {
            td role="cell" {}
            td role="cell" colspan="4" {
                p {
                    @match &help.still {
                        Some((css, matches)) if css == whole => {
                            "Its selector " code { (text(css)) } " matches " (times(*matches)) ", but what is there is not what is asked for"
                            (instead(&field.broke)) ". "
                        }
                        Some((css, matches)) => { "Of its selector " code { (text(css)) } " still matches, " (times(*matches)) ". " }
                        None => { "No part of " code { (text(whole)) } " matches any more. " }
                    }
                    @match help.candidates.len() {
                        0 => { "No place on this page looks like it." }
                        1 => { "One place on this page could be meant, as " (kind) ":" }
                        n => { (n) " places on this page could be meant, as " (kind) ":" }
                    }
                }
                @if !help.candidates.is_empty() {
                    table.candidates role="table" {
                        @if trying.counts.is_some() {
                            (columns(&[
                                column("Rule"), column_num("Here"), column_num("Matches on saved pages"), column_unseen("Action"),
                            ]))
                        } @else { (columns(&[column("Rule"), column_num("Here"), column_unseen("Action")])) }
                        tbody role="rowgroup" {
                            @for candidate in &help.candidates {
                                tr role="row" {
                                    td role="cell" { code { (text(&candidate.rule)) } }
                                    td.num role="cell" { (text(&candidate.value)) }
                                    @if let Some(counts) = &trying.counts { (matches(&field.field, &candidate.rule, counts.as_deref())) }
                                    td role="cell" {
                                        a.button.small href=(drafted(trying.replay, &field.field, &candidate.rule)) { "Try this rule" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn times(n: usize) -> String {
    if n == 1 { "once".to_owned() } else { counted(n as i64, "time", "times") }
}

/// On how many saved pages a rule finds something. It is known by what it is about: another page may suggest other rules by then.
fn matches(field: &str, rule: &str, counts: Option<&CandidateCounts>) -> Markup {
    let id = format!("match-{}", &blake3::hash(format!("{field} {rule}").as_bytes()).to_hex()[..10]);
    let counted = counts.and_then(|counts| Some((counts.of_rule(field, rule)?, counts.of)));
    html! {
        td.num id=(id) role="cell" data-live data-busy[counts.is_none()] {
            @match (counted, counts) {
                (Some((_, 0)) | None, Some(_)) => { span.muted { "none was read" } }
                (Some((matches, of)), Some(_)) => { (part_of(matches as i64, of as i64)) }
                (_, None) => { span.muted title="being counted: look again" { "…" } }
            }
        }
    }
}

/// Where a rule is tried as a draft.
fn drafted(replay: &str, field: &str, rule: &str) -> String {
    let draft = form_urlencoded::Serializer::new(String::new()).append_pair(&format!("draft.{field}"), rule).finish();
    format!("{replay}{}{draft}#step-2", if replay.contains('?') { "&" } else { "?" })
}

/// What the handler said, where its rules are not known here.
fn by_handler(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.misses.is_empty() {
            (misses(&comparison.misses))
        } @else if comparison.why_not.is_none() {
            p.empty { "The rules of this pipeline are not in this server's configuration, and its handler named no field." }
        }
    }
}

/// What an answer lacked, one by one.
pub fn misses(misses: &[Miss]) -> Markup {
    html! {
        table.misses role="table" {
            (columns(&[column("Field"), column("Rule"), column("What is amiss"), column("Found instead")]))
            tbody role="rowgroup" {
                @for miss in misses {
                    tr.miss role="row" {
                        th role="rowheader" scope="row" { (name(&miss.field)) }
                        td role="cell" { code { (name(&miss.rule)) } }
                        td role="cell" {
                            (name(&miss.code))
                            @if let Some(why) = &miss.why { span.fact { (text(why)) } }
                        }
                        td role="cell" data-l="found instead" {
                            @match &miss.found {
                                Some(found) => { code { (text(found)) } } None => { span.muted { "nothing" } }
                            }
                        }
                    }
                }
            }
        }
    }
}
