//! How often each field was found, by the version of the fields' rules (of nothing else in the definition): whether a change of them found more, or lost something.

use std::collections::BTreeMap;

use maud::{Markup, html};
use redrive::contract::CoverageCount;
use redrive_core::time::Timestamp;

use super::super::parts::{instant, name, section_head};
use crate::look::figures::{count, percent, share};

/// Versions that stand beside each other, the newest first, and fields that are listed.
const VERSIONS: usize = 4;
const FIELDS: usize = 40;

/// What was counted of a field by a version: records that had it, and all.
type Found = (i64, i64);

/// Draws the section; nothing of a pipeline that makes no records.
pub fn section(counts: &[CoverageCount], now: Timestamp) -> Markup {
    let versions = versions(counts);
    let fields = fields(counts);
    if fields.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="coverage" {
            (section_head("coverage", "Fields found, by version of their rules", "records that had it of all, 7 days; a version is of the fields alone"))
                table.coverage role="table" {
                    thead role="rowgroup" {
                        tr role="row" {
                            th role="columnheader" scope="col" { "Field" }
                            @for (version, first) in &versions {
                                th.num role="columnheader" scope="col" {
                                    code { (cut(version)) } " " span.fact { "since " (instant(*first, now)) }
                                }
                            }
                        }
                    }
                    tbody role="rowgroup" {
                        @for (field, found) in fields.iter().take(FIELDS) {
                            tr role="row" {
                                th role="rowheader" scope="row" { (name(field)) }
                                @for (version, _) in &versions { td.num role="cell" data-l=(cut(version)) { (cell(found.get(version))) } }
                            }
                        }
                    }
                }
            @if fields.len() > FIELDS { p.table-foot { (count((fields.len() - FIELDS) as i64)) " more fields." } }
        }
    }
}

/// The versions that made records, the one that did so last first, each with its first hour.
fn versions(counts: &[CoverageCount]) -> Vec<(&str, Timestamp)> {
    let mut hours = BTreeMap::<&str, (Timestamp, Timestamp)>::new();
    for count in counts {
        let (first, last) = hours.entry(&count.version).or_insert((count.hour, count.hour));
        (*first, *last) = ((*first).min(count.hour), (*last).max(count.hour));
    }
    let mut versions: Vec<_> = hours.into_iter().collect();
    versions.sort_by_key(|(_, (first, last))| std::cmp::Reverse((*last, *first)));
    versions.truncate(VERSIONS);
    versions.into_iter().map(|(version, (first, _))| (version, first)).collect()
}

fn fields(counts: &[CoverageCount]) -> BTreeMap<&str, BTreeMap<&str, Found>> {
    let mut fields = BTreeMap::<&str, BTreeMap<&str, Found>>::new();
    for count in counts {
        let (found, all) = fields.entry(&count.field).or_default().entry(&count.version).or_default();
        *found += count.found;
        *all += count.found + count.missing;
    }
    fields
}

fn cell(found: Option<&Found>) -> Markup {
    html! {
        @match found {
            Some((found, all)) if *all > 0 => {
                (count(*found)) " of " (count(*all)) " " span.share { (percent(share(*found, *all))) }
            }
            _ => { span.muted { "not asked for" } }
        }
    }
}

/// The beginning of a version, which is a hash.
fn cut(version: &str) -> String {
    match version.chars().take(8).collect::<String>() {
        none if none.is_empty() => "unknown".to_owned(),
        beginning => beginning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_beside_each_other_with_what_each_found() {
        let at = |hour: i64| Timestamp::from_millis(hour * 3_600_000);
        let of = |version: &str, hour, field: &str, (found, missing)| CoverageCount {
            pipeline: "shop".parse().expect("a name"),
            version: version.to_owned(),
            hour: at(hour),
            field: field.to_owned(),
            found,
            missing,
        };
        let counts = [
            of("aaaaaaaaaaaa", 1, "price", (90, 10)),
            of("aaaaaaaaaaaa", 2, "price", (10, 0)),
            of("bbbbbbbbbbbb", 3, "price", (1, 3)),
            of("bbbbbbbbbbbb", 3, "title", (4, 0)),
        ];
        let drawn = section(&counts, at(4)).into_string();
        assert!(drawn.find("bbbbbbbb") < drawn.find("aaaaaaaa"), "the newest first: {drawn}");
        for said in ["100 of 110", "1 of 4", "4 of 4", "not asked for"] {
            assert!(drawn.contains(said), "{said}: {drawn}");
        }
        assert_eq!(section(&[], at(4)).into_string(), "");
    }
}
