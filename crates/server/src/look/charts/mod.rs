//! Charts as SVG, made from numbers. They need no script, scale to the width they are given without scaling their text,
//! and take all colours from classes, so that they keep to a strict Content-Security-Policy and follow dark and light.
//!
//! Across, everything is in percent; down, in pixels. Text goes through `maud`, which escapes it.

use maud::{Markup, html};

pub mod bars;
pub mod heatmap;
pub mod sparkline;
pub mod timeline;

pub use bars::bar;
pub use sparkline::sparkline;

/// The style of the charts. The page defines the colours it refers to.
pub const STYLE: &str = include_str!("charts.css");

/// Something that is not nothing is at least this high, so that it can be seen.
const VISIBLE_PX: f64 = 1.5;

/// A position or width across.
fn percent(share: f64) -> String {
    format!("{:.3}%", finite(share) * 100.0)
}

/// A position or height down.
fn px(pixels: f64) -> String {
    format!("{:.1}", finite(pixels))
}

fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { 0.0 }
}

/// The height of a value in a chart of `height` pixels whose top is `top`.
fn height_of(value: i64, top: i64, height: f64) -> f64 {
    if value <= 0 || top <= 0 {
        return 0.0;
    }
    (value as f64 / top as f64 * height).clamp(VISIBLE_PX, height)
}

/// A rectangle of a class.
fn rect(class: &str, x: f64, y: f64, width: f64, height: f64) -> Markup {
    html! { rect class=(class) x=(percent(x)) y=(px(y)) width=(percent(width)) height=(px(height)) {} }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Panics if something in the drawing is not a number.
    pub fn assert_finite(drawing: &Markup) {
        for word in ["NaN", "inf", "\"-"] {
            let attributes = drawing.0.replace("x=\"-8\"", "");
            assert!(!attributes.contains(word), "{word} in {}", drawing.0);
        }
    }

    #[test]
    fn whatever_the_numbers_coordinates_are_numbers() {
        assert_eq!([percent(f64::NAN), percent(0.25), px(f64::INFINITY), px(3.0)], ["0.000%", "25.000%", "0.0", "3.0"]);
        assert_eq!([height_of(0, 9, 50.0), height_of(9, 0, 50.0), height_of(-3, 9, 50.0)], [0.0; 3]);
        assert_eq!([height_of(1, i64::MAX, 50.0), height_of(18, 9, 50.0)], [VISIBLE_PX, 50.0]);
    }
}
