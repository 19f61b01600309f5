//! A sparkline: the shape of a series in the height of a line of text.

use maud::{Markup, html};

use super::{height_of, rect};
use crate::look::tone::Tone;

/// The height of a sparkline.
const HEIGHT: f64 = 28.0;

/// A series as small columns, oldest first. The title says in words what is to be seen.
pub fn sparkline(title: &str, values: &[i64], tone: Tone) -> Markup {
    drawn(title, values, tone, None)
}

/// The same where the last column is not over: it is drawn lighter.
pub fn sparkline_until_now(title: &str, values: &[i64], tone: Tone) -> Markup {
    drawn(title, values, tone, values.len().checked_sub(1))
}

fn drawn(title: &str, values: &[i64], tone: Tone, unfinished: Option<usize>) -> Markup {
    let top = values.iter().copied().max().unwrap_or(0);
    let slot = 1.0 / values.len().max(1) as f64;
    let class =
        |at: usize| if Some(at) == unfinished { format!("{} now", tone.class()) } else { tone.class().to_owned() };
    html! {
        svg.sparkline height=(HEIGHT) role="img" aria-label=(title) {
            title { (title) }
            (rect("track", 0.0, HEIGHT - 1.0, 1.0, 1.0))
            @for (at, value) in values.iter().enumerate().filter(|(_, value)| **value > 0) {
                @let height = height_of(*value, top, HEIGHT);
                (rect(&class(at), at as f64 * slot, HEIGHT - height, slot * 0.8, height))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::charts::tests::assert_finite;

    #[test]
    fn any_series_can_be_drawn() {
        for values in [&[][..], &[0], &[0; 24], &[-5, 3], &[i64::MAX, 1, i64::MIN]] {
            assert_finite(&sparkline("trend", values, Tone::Bad));
            assert_finite(&sparkline_until_now("trend", values, Tone::Bad));
        }
    }

    #[test]
    fn titles_are_escaped() {
        let drawn = sparkline("<script>\"&", &[1], Tone::Bad).0;
        assert!(drawn.contains("<title>&lt;script&gt;&quot;&amp;</title>"), "{drawn}");
        assert!(drawn.contains("aria-label=\"&lt;script&gt;&quot;&amp;\""), "{drawn}");
    }
}
