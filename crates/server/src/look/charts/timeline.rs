//! Columns over time, each stacked from several series. The first series stands on the ground line, where its shape is
//! easiest to see: give it what matters most.

use maud::{Markup, html};

use super::{height_of, percent, px, rect};
use crate::look::figures::{count, short};
use crate::look::tone::Tone;

/// The height of the columns, and of the labels below them.
const HEIGHT: f64 = 190.0;
const LABELS_PX: f64 = 24.0;
/// So many lines across, besides the ground line, at most.
const LINES: i64 = 4;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its colour.
    pub tone: Tone,
}

/// One step in time.
#[derive(Clone, Debug)]
pub struct Column {
    /// When it was, in words.
    pub title: String,
    /// The label below it, if it has one.
    pub label: Option<String>,
    /// One value per series.
    pub values: Vec<i64>,
}

/// Something that happened in one of the columns.
#[derive(Clone, Debug)]
pub struct Mark {
    /// In which.
    pub at: usize,
    /// What, in a word or two.
    pub label: String,
}

/// Draws the columns, oldest first, with their legend.
pub fn timeline(title: &str, series: &[Series<'_>], columns: &[Column]) -> Markup {
    marked_timeline(title, series, columns, &[])
}

/// The same with marks, oldest first, at what happened meanwhile. Those that are too near to another are lines without words.
pub fn marked_timeline(title: &str, series: &[Series<'_>], columns: &[Column], marks: &[Mark]) -> Markup {
    let highest = columns.iter().map(|column| column.values.iter().map(|value| value.max(&0)).sum()).max().unwrap_or(0);
    let step = line_step(highest);
    let lines = ((highest - 1).div_euclid(step) + 1).max(1);
    let slot = 1.0 / columns.len().max(1) as f64;
    let labels = columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.label.as_deref()?)));
    html! {
        (legend(series))
        svg.timeline height=(px(HEIGHT + LABELS_PX)) role="img" aria-label=(title) {
            title { (title) }
            @for line in 0..=lines { (line_across(step.saturating_mul(line), line as f64 / lines as f64)) }
            @for (at, column) in columns.iter().enumerate() {
                (stack(column, series, at as f64 * slot, slot, step.saturating_mul(lines)))
            }
            @for (mark, is_named) in named(marks, slot) {
                (marked(mark, is_named, slot))
            }
            @for (number, (at, label)) in labels.enumerate() {
                text.label.spare[number % 2 == 1] x=(percent(at as f64 * slot)) y=(px(HEIGHT + 18.0)) { (label) }
            }
        }
    }
}

/// The least distance between two marks with words, as a share of the width.
const WORDS_APART: f64 = 0.12;

/// The marks, each with whether there is room for its words.
fn named(marks: &[Mark], slot: f64) -> Vec<(&Mark, bool)> {
    let mut last = f64::NEG_INFINITY;
    let mut is_named = |mark: &Mark| {
        let x = mark.at as f64 * slot;
        let has_room = x - last >= WORDS_APART;
        if has_room {
            last = x;
        }
        has_room
    };
    marks.iter().map(|mark| (mark, is_named(mark))).collect()
}

/// A line over the whole height, with what happened.
fn marked(mark: &Mark, is_named: bool, slot: f64) -> Markup {
    let share = (mark.at as f64 + 0.5) * slot;
    let (x, is_late) = (percent(share), share > 0.8);
    html! {
        g.mark {
            title { (mark.label) }
            line x1=(x) x2=(x) y1="0" y2=(px(HEIGHT)) {}
            @if is_named { text x=(x) dx=(if is_late { "-4" } else { "4" }) y="10" text-anchor=[is_late.then_some("end")] { (mark.label) } }
        }
    }
}

/// The names and colours of the series.
fn legend(series: &[Series<'_>]) -> Markup {
    html! {
        ul.legend {
            @for series in series {
                li {
                    svg width="10" height="10" aria-hidden="true" { (rect(series.tone.class(), 0.0, 0.0, 1.0, 10.0)) }
                    (series.name)
                }
            }
        }
    }
}

/// A line across at a share of the height, with its value on the left.
fn line_across(value: i64, share: f64) -> Markup {
    let y = px(HEIGHT * (1.0 - share));
    html! {
        line.grid.ground[value == 0] x1="0%" x2="100%" y1=(y) y2=(y) {}
        text.value x="-8" y=(y) dy="0.32em" { (short(value)) }
    }
}

/// One column. It answers to the pointer over its whole height.
fn stack(column: &Column, series: &[Series<'_>], x: f64, slot: f64, top: i64) -> Markup {
    let parts = || series.iter().zip(&column.values);
    let mut y = HEIGHT;
    let pieces = parts().map(|(series, value)| {
        let height = height_of(*value, top, HEIGHT).min(y);
        y -= height;
        (series.tone.class(), y, height)
    });
    html! {
        g {
            title { (column.title) @for (series, value) in parts() { ", " (series.name) " " (count(*value)) } }
            (rect("slot", x, 0.0, slot, HEIGHT))
            @for (class, y, height) in pieces.filter(|(_, _, height)| *height > 0.0) {
                (rect(class, x + slot * 0.1, y, slot * 0.8, height))
            }
        }
    }
}

/// The distance between lines across: 1, 2 or 5, with zeros, so that there are few of them.
fn line_step(highest: i64) -> i64 {
    let steps = (0..=18).flat_map(|zeros| [1, 2, 5].map(|digit| digit * 10_i64.pow(zeros)));
    steps.into_iter().find(|step| (highest - 1).div_euclid(*step) < LINES).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::charts::tests::assert_finite;

    const SERIES: [Series<'_>; 2] =
        [Series { name: "buried", tone: Tone::Bad }, Series { name: "<done>", tone: Tone::Plain }];

    fn column(values: &[i64]) -> Column {
        Column { title: "14:00 <b>".to_owned(), label: Some("14:00 & on".to_owned()), values: values.to_vec() }
    }

    #[test]
    fn any_numbers_can_be_drawn() {
        for values in [&[][..], &[0, 0], &[-4, 2], &[i64::MAX / 4, 1], &[1]] {
            assert_finite(&timeline("jobs", &SERIES, &[column(values), column(&[0, 0])]));
        }
        assert_finite(&timeline("jobs", &SERIES, &[]));
    }

    #[test]
    fn marks_have_words_where_there_is_room() {
        let columns: Vec<Column> = (0..100).map(|_| column(&[1, 1])).collect();
        let marks = [0, 1, 50, 99].map(|at| Mark { at, label: format!("rules <v{at}>") });
        let drawn = marked_timeline("jobs", &SERIES, &columns, &marks).0;
        assert_eq!(drawn.matches("class=\"mark\"").count(), 4);
        assert_eq!(drawn.matches("rules &lt;v").count(), 4 + 3, "one is too near: {drawn}");
        assert!(drawn.contains("text-anchor=\"end\"") && !drawn.contains("<v0>"), "{drawn}");
    }

    #[test]
    fn text_is_escaped() {
        let drawn = timeline("\"jobs\"", &SERIES, &[column(&[1, 2_000])]).0;
        assert!(drawn.contains("14:00 &lt;b&gt;, buried 1, &lt;done&gt; 2,000</title>"), "{drawn}");
        assert!(
            drawn.contains("aria-label=\"&quot;jobs&quot;\"") && drawn.contains(">14:00 &amp; on</text>"),
            "{drawn}"
        );
    }

    #[test]
    fn lines_across_are_round_and_few() {
        let steps = [0, 1, 4, 5, 9, 21, 100, 420, 1_204, 9_999].map(line_step);
        assert_eq!(steps, [1, 1, 1, 2, 5, 10, 50, 200, 500, 5_000]);
        assert!(line_step(i64::MAX) > 0);
    }
}
