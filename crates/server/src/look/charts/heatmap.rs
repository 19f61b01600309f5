//! A heat map: rows of cells, the darker the more. Each cell has its number, in a title and, where there is room, on
//! it.

use maud::{Markup, html};

use super::{percent, px, rect};
use crate::look::figures::{count, short};
use crate::look::foreign::cut;

/// The height of a row, of the labels above the first one, and of the gap between rows.
const ROW_PX: f64 = 24.0;
const LABELS_PX: f64 = 20.0;
const GAP_PX: f64 = 2.0;
/// Shades, besides the one for nothing.
const SHADES: f64 = 5.0;
/// Names of rows are cut to so many characters: there is no room for more.
const NAME_WIDTH: usize = 18;

/// A row of cells.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Its name, on the left.
    pub name: &'a str,
    /// Its numbers, one per column.
    pub cells: &'a [i64],
}

/// Draws the rows under the names of the columns.
pub fn heatmap(title: &str, columns: &[String], rows: &[Row<'_>]) -> Markup {
    let most = rows.iter().flat_map(|row| row.cells).copied().max().unwrap_or(0);
    let slot = 1.0 / columns.len().max(1) as f64;
    html! {
        svg.heatmap height=(px(LABELS_PX + ROW_PX * rows.len() as f64)) role="img" aria-label=(title) {
            title { (title) }
            @for (at, column) in columns.iter().enumerate() {
                text.label.spare[at % 3 > 0] x=(percent((at as f64 + 0.5) * slot)) y="12" { (column) }
            }
            @for (number, row) in rows.iter().enumerate() {
                @let (y, name) = (LABELS_PX + ROW_PX * number as f64, cut(row.name, NAME_WIDTH));
                text.value x="-8" y=(px(y + ROW_PX / 2.0)) dy="0.32em" { (name) }
                @for (at, (value, column)) in row.cells.iter().zip(columns).enumerate() {
                    g {
                        title { (name) ", " (column) ": " (count(*value)) }
                        (cell(*value, most, at as f64 * slot, y, slot))
                    }
                }
            }
        }
    }
}

fn cell(value: i64, most: i64, x: f64, y: f64, slot: f64) -> Markup {
    let shade = shade(value, most);
    let (middle, centre) = (percent(x + slot * 0.47), px(y + ROW_PX / 2.0 - 1.0));
    html! {
        (rect(&format!("shade-{shade}"), x, y, slot * 0.94, ROW_PX - GAP_PX))
        @if value > 0 {
            text class={ "cell on-" (shade) } x=(middle) y=(centre) dy="0.34em" { (short(value)) }
        }
    }
}

/// From 0, for nothing, to [`SHADES`], for the most. By the cube root, so that one bad hour does not hide all others.
fn shade(value: i64, most: i64) -> u8 {
    if value <= 0 || most <= 0 {
        return 0;
    }
    ((value as f64 / most as f64).cbrt() * SHADES).ceil().clamp(1.0, SHADES) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::charts::tests::assert_finite;

    #[test]
    fn any_numbers_can_be_drawn() {
        let columns: Vec<String> = (0..24).map(|hour| format!("{hour:02}")).collect();
        for cells in [&[][..], &[0; 24], &[-1, 5, i64::MAX], &[7; 30]] {
            assert_finite(&heatmap("clock", &columns, &[Row { name: "timeout", cells }]));
            assert_finite(&heatmap("clock", &[], &[Row { name: "timeout", cells }]));
        }
    }

    #[test]
    fn the_more_the_darker() {
        assert_eq!([0, 1, 5, 12, 40, 100, 400, -3].map(|value| shade(value, 100)), [0, 2, 2, 3, 4, 5, 5, 0]);
    }

    #[test]
    fn names_are_escaped_and_cut() {
        let drawn =
            heatmap("clock", &["<0>".to_owned()], &[Row { name: "<img src=x onerror=alert(1)>", cells: &[3] }]).0;
        assert!(!drawn.contains("<img") && !drawn.contains("<0>"), "{drawn}");
        assert!(drawn.contains(">&lt;img src=x onerro…</text>"), "{drawn}");
    }
}
