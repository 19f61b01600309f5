//! How things look, the same on the pages of the dashboard, in the HTML report and, as far as it can be, in a terminal.
//!
//! - [`figures`]: how numbers and times are written; [`different`]: what sets those who died apart, in words
//! - [`tone`]: what a colour means
//! - [`charts`]: pictures, SVG made from numbers
//! - [`foreign`]: text of unknown origin

pub mod charts;
pub mod different;
pub mod figures;
pub mod foreign;
pub mod tone;

/// The colours and fonts of every page, light and dark.
pub const PALETTE: &str = include_str!("palette.css");

#[cfg(test)]
mod tests {
    use super::PALETTE;

    /// A colour of the palette, light (0) or dark (1).
    fn colour(scheme: usize, name: &str) -> [f64; 3] {
        let block = PALETTE.split(":root {").nth(scheme + 1).expect("a block");
        let from = block.find(&format!("--{name}: #")).unwrap_or_else(|| panic!("no {name}")) + name.len() + 5;
        [0, 2, 4]
            .map(|at| u8::from_str_radix(&block[from + at..from + at + 2], 16).expect("hexadecimal"))
            .map(|value| f64::from(value) / 255.0)
    }

    /// The contrast of two colours as WCAG 2.2 defines it.
    fn contrast(one: [f64; 3], another: [f64; 3]) -> f64 {
        let linear = |c: f64| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) };
        let luminance = |[r, g, b]: [f64; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        let (light, dark) = (luminance(one).max(luminance(another)), luminance(one).min(luminance(another)));
        (light + 0.05) / (dark + 0.05)
    }

    #[test]
    fn text_and_graphics_stand_out() {
        let texts = ["text", "muted", "link", "good-text", "warn-text", "bad-text"].map(|name| (name, "ground", 4.5));
        let graphics =
            ["plain", "good", "warn", "bad", "quiet", "control-edge", "link"].map(|name| (name, "ground", 3.0));
        let on_tints = [
            ("text", "selected", 5.0),
            ("text", "good-tint", 5.0),
            ("good-text", "good-tint", 5.0),
            ("warn-text", "warn-tint", 5.0),
            ("bad-text", "bad-tint", 5.0),
            ("muted", "selected", 4.5),
            ("on-link", "link", 4.5),
        ];
        for scheme in [0, 1] {
            for (name, on, least) in texts.into_iter().chain(graphics).chain(on_tints) {
                let found = contrast(colour(scheme, name), colour(scheme, on));
                assert!(found >= least, "{name} on {on} in scheme {scheme}: {found:.2}, not {least}");
            }
        }
    }
}
