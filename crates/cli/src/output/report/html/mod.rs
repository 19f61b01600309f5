//! The report as one HTML file. It opens offline and asks nobody for anything: no script, no font, no picture, and a
//! policy that forbids them, so that a hostile name in the data stays text.
//!
//! The order is that of the questions: what fails, where, when, since when.

use maud::{DOCTYPE, Markup, PreEscaped, html};

mod causes;
mod clock;
mod fields;
mod overview;
mod pipelines;
mod shares;

use crate::output::foreign::cut;
use crate::output::report::charts;
use crate::output::report::figures::{count, moment};
use redrive::report::Report;
use redrive_server::look::PALETTE;

const STYLE: &str = include_str!("page.css");
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Text of unknown origin is cut to so many characters, a mere name to fewer.
const TEXT_WIDTH: usize = 160;
const NAME_WIDTH: usize = 48;

/// The whole page.
pub fn page(report: &Report) -> String {
    let window = format!("{} to {}", moment(report.since), moment(report.until));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Redrive report, " (window) }
                style { (PreEscaped(PALETTE)) (PreEscaped(STYLE)) (PreEscaped(charts::STYLE)) }
            }
            body {
                header { h1 { "Redrive report" } p.note { (window) " UTC" } }
                main {
                    (overview::headline(report))
                    (overview::numbers(report))
                    div.sections { (sections(report)) }
                }
                footer { p.note { "Made " (moment(report.made_at)) ". All times are UTC." } }
            }
        }
    };
    page.into_string()
}

/// A part of the page. Without a body there is nothing to show.
struct Section {
    title: &'static str,
    note: String,
    body: Option<Markup>,
    /// Whether it can do with half the width.
    half: bool,
}

impl Section {
    fn new(title: &'static str, note: impl Into<String>, body: Option<Markup>) -> Self {
        Self { title, note: note.into(), body, half: false }
    }

    fn half(title: &'static str, note: impl Into<String>, body: Option<Markup>) -> Self {
        Self { half: true, ..Self::new(title, note, body) }
    }
}

fn sections(report: &Report) -> Markup {
    let sections = [
        overview::timeline(report),
        causes::section(report),
        pipelines::section(report),
        shares::reasons(report),
        shares::codes(report),
        shares::targets(report),
        shares::proxies(report),
        clock::section(report),
        fields::section(report),
    ];
    let empty: Vec<&str> =
        sections.iter().filter(|section| section.body.is_none()).map(|section| section.title).collect();
    html! {
        @for section in &sections {
            @if let Some(body) = &section.body {
                section.half[section.half] { h2 { (section.title) } p.note { (section.note) } (body) }
            }
        }
        @if !empty.is_empty() { p.note.empty { "Nothing to show for: " (empty.join(", ").to_lowercase()) "." } }
    }
}

/// Text of unknown origin. Its direction of writing does not reach what is around it.
fn text(text: &str) -> Markup {
    html! { bdi { (cut(text, TEXT_WIDTH)) } }
}

/// A name of unknown origin.
fn name(name: &str) -> Markup {
    html! { bdi { (cut(name, NAME_WIDTH)) } }
}

/// Says how many were left out, if any.
fn more(all: usize, shown: usize) -> Markup {
    let left = all.saturating_sub(shown) as i64;
    html! { @if left > 0 { p.note { "And " (count(left)) " more." } } }
}

/// The numbers of a chart, for those who want them as numbers.
fn numbers_table(headings: &[&str], rows: impl Iterator<Item = (String, Vec<i64>)>) -> Markup {
    html! {
        details {
            summary { "As a table" }
            div.scroll role="region" aria-label="Numbers" tabindex="0" {
                table {
                    thead {
                        tr {
                            @for (at, heading) in headings.iter().enumerate() {
                                th.number[at > 0] scope="col" { (heading) }
                            }
                        }
                    }
                    tbody {
                        @for (name, values) in rows {
                            tr { th scope="row" { (name) } @for value in values { td.number { (count(value)) } } }
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
    use crate::output::report::sample;

    #[test]
    fn every_report_makes_a_page_without_strange_numbers() {
        for report in [sample::empty(), sample::busy(), sample::huge()] {
            let page = page(&report);
            assert!(!page.contains("NaN") && !page.contains("inf%"), "{page}");
            assert!(page.ends_with("</html>"));
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let page = page(&sample::huge());
        let tags = ["<script", "<img", "<a ", "<iframe", "\u{202e}", "\u{1b}", "\u{0}"];
        for tag in tags {
            assert!(!page.contains(tag), "{tag:?} got through");
        }
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn nothing_is_asked_of_anybody() {
        let page = page(&sample::busy());
        for wish in ["src=", "href=", "url(", "@import", "<link", "style=\""] {
            assert!(!page.contains(wish), "{wish}");
        }
    }

    #[test]
    fn an_empty_report_says_so() {
        let page = page(&sample::empty());
        assert!(page.contains("No task came to its end"), "{page}");
        assert!(!page.contains("<svg"), "{page}");
    }
}
