//! What differs between the two pages, one tag a line.

use maud::{Markup, html};
use redrive::compare::{Comparison, Hunk, HunkLine, HunkRow};

use super::none_kept;
use crate::look::figures::count;
use crate::look::foreign::harmless;
use crate::pages::parts::text;

/// How far lines are indented at most.
const INDENT_MAX: u64 = 12;

/// The hunks, those near rules that find nothing first.
pub fn table(comparison: &Comparison) -> Markup {
    if comparison.worked.is_none() {
        return html! { p.empty { "There is nothing to compare with: " (none_kept(comparison)) "." } };
    }
    if comparison.why_not.is_some() {
        return html! {};
    }
    if let Some(why) = &comparison.no_diff {
        return html! { p.empty { "What differs is not known: " (text(why)) "." } };
    }
    if comparison.hunks.is_empty() {
        return html! {
            p.empty { "Both pages are built alike: they differ in texts, addresses and numbers only." }
        };
    }
    let shown = comparison.hunks.len() as i64;
    html! {
        (side_by_side(&comparison.hunks, true))
        @if comparison.hunks_count as i64 > shown {
            p.table-foot { (count(shown)) " of " (count(comparison.hunks_count as i64)) " places that differ are shown." }
        }
    }
}

/// The hunk around the first rule that finds nothing any more, if there is one. `all` is where the others are.
pub fn nearest(comparison: &Comparison, all: &str) -> Markup {
    let Some(hunk) = comparison.hunks.first().filter(|hunk| !hunk.near.is_empty()) else { return html! {} };
    html! {
        div.section-head.nearest {
            h3 { "Nearest difference" }
            span.fact { "1 of " (count(comparison.hunks_count as i64)) ", around the rule of " (text(&hunk.near.join(", "))) }
            span.end { a href=(all) { "All that differs" } }
        }
        // Which rule it is about is said above.
        (side_by_side(&[around(hunk)], false))
    }
}

/// Lines before and after what a rule found, which are shown of the nearest hunk.
const NEAREST_LINES: usize = 7;

/// What of a hunk is near the first line that a rule found on the page that worked and finds no more.
fn around(hunk: &Hunk) -> Hunk {
    let is_it = |row: &HunkRow| {
        let gone = row.worked.as_ref().filter(|_| row.broke.is_none());
        gone.is_some_and(|line| line.fields.iter().any(|field| hunk.near.contains(field)))
    };
    let at = hunk.rows.iter().position(is_it).unwrap_or(0);
    let range = at.saturating_sub(NEAREST_LINES)..(at + NEAREST_LINES).min(hunk.rows.len());
    let is_cut = hunk.is_cut || range.len() < hunk.rows.len();
    Hunk { near: hunk.near.clone(), rows: hunk.rows[range].to_vec(), is_cut }
}

fn side_by_side(hunks: &[Hunk], is_named: bool) -> Markup {
    html! {
        div.diffs tabindex="0" role="region" aria-label="What differs" {
            table.diff role="table" {
                colgroup { col.d-why; col.d-ln; col; col.d-why; col.d-ln; col; }
                thead role="rowgroup" { tr role="row" {
                    th role="columnheader" scope="col" colspan="3" { "+ Page that broke" }
                    th.edge role="columnheader" scope="col" colspan="3" { "− Last page that worked" }
                } }
                @for hunk in hunks { (one(hunk, is_named)) }
            }
        }
    }
}

fn one(hunk: &Hunk, is_named: bool) -> Markup {
    // Lines are set in from the outermost of them, wherever on the page that is.
    let depths = hunk.rows.iter().flat_map(|row| [&row.broke, &row.worked]).flatten().map(|line| line.depth);
    let outermost = depths.min().unwrap_or(0);
    html! {
        tbody.hunk role="rowgroup" {
            @if is_named && !hunk.near.is_empty() {
                tr.hunk-head role="row" { th role="rowheader" colspan="6" { "around the rule of " (hunk.near.join(", ")) } }
            }
            @for row in &hunk.rows { (line(row, &hunk.near, outermost)) }
            @if hunk.is_cut { tr role="row" { td.fold role="cell" colspan="6" { "⋯" } } }
        }
    }
}

fn line(row: &HunkRow, near: &[String], outermost: u64) -> Markup {
    let is_same = row.broke.is_some() && row.worked.is_some();
    let side = |line: Option<&HunkLine>, class: &'static str, edge: bool| {
        let class = if is_same { "" } else { class };
        html! {
            @match line {
                None => { td class={ "none" @if edge { " edge" } } role="cell" colspan="3" {} }
                Some(line) => {
                    td class={ "why " (class) @if edge { " edge" } } role="cell" { (marks(line, near)) }
                    td class={ "ln " (class) } role="cell" { (line.number) }
                    td class={ "cd " (class) } role="cell" {
                        code title=(harmless(&line.text)) { (indent(line.depth - outermost)) (harmless(&line.text)) }
                    }
                }
            }
        }
    };
    html! {
        tr.both[is_same] role="row" { (side(row.broke.as_ref(), "in", false)) (side(row.worked.as_ref(), "out", true)) }
    }
}

/// Which fields a line is about.
fn marks(line: &HunkLine, near: &[String]) -> Markup {
    html! {
        @for field in &line.fields {
            @if near.contains(field) { "✗ " (field) } @else { span.muted { (field) } }
            " "
        }
    }
}

fn indent(depth: u64) -> String {
    "  ".repeat(usize::try_from(depth.min(INDENT_MAX)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_nearest_hunk_only_what_is_near_the_rule_is_shown() {
        let line = |number: u64, fields: &[&str]| HunkLine {
            number,
            depth: 1,
            text: "<p>".into(),
            fields: fields.iter().map(ToString::to_string).collect(),
        };
        let row = |n: u64| HunkRow { broke: None, worked: Some(line(n, if n == 50 { &["price"] } else { &[] })) };
        let hunk = Hunk { near: vec!["price".into()], rows: (0..120).map(row).collect(), is_cut: false };
        let shown = around(&hunk);
        assert_eq!((shown.rows.len(), shown.is_cut), (2 * NEAREST_LINES, true));
        assert!(shown.rows.iter().any(|row| row.worked.as_ref().is_some_and(|line| line.number == 50)));
        let short = Hunk { rows: hunk.rows[48..52].to_vec(), ..hunk };
        assert_eq!((around(&short).rows.len(), around(&short).is_cut), (4, false));
    }
}
