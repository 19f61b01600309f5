//! A horizontal bar, for a cell of a table. The number stands in the cell beside it, so screen readers skip the bar.

use maud::{Markup, html};

use super::{percent, rect};
use crate::look::tone::Tone;

/// The height of a bar.
const HEIGHT: f64 = 10.0;

/// A bar as long as a share of the width, with an optional mark at another share to compare it with.
pub fn bar(share: f64, mark: Option<f64>, tone: Tone) -> Markup {
    let within = |share: f64| if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    html! {
        svg.bar height=(HEIGHT) aria-hidden="true" {
            (rect("track", 0.0, 0.0, 1.0, HEIGHT))
            @if share > 0.0 { (rect(tone.class(), 0.0, 0.0, within(share).max(0.004), HEIGHT)) }
            @if let Some(mark) = mark {
                line.mark x1=(percent(within(mark))) x2=(percent(within(mark))) y1="-2" y2=(HEIGHT + 2.0) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_within_its_width() {
        for share in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 0.5, 7.0] {
            let drawn = bar(share, Some(share), Tone::Bad).0;
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
            assert!(!drawn.contains("700"), "{drawn}");
        }
        assert!(bar(0.5, None, Tone::Bad).0.contains(r#"class="bad" x="0.000%" y="0.0" width="50.000%""#));
        assert!(!bar(0.0, None, Tone::Bad).0.contains("bad"));
    }
}
