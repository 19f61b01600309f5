//! How alike two templates are. Only ever a suggestion: a person decides whether two causes are one.

use std::collections::HashMap;

/// The share of words that two templates have in common, from 0 to 1.
pub fn similarity(a: &str, b: &str) -> f64 {
    let (mut counts, mut total) = (HashMap::new(), 0usize);
    for word in words(a) {
        *counts.entry(word).or_insert(0usize) += 1;
        total += 1;
    }
    let mut shared = 0usize;
    for word in words(b) {
        total += 1;
        if let Some(left) = counts.get_mut(word).filter(|left| **left > 0) {
            *left -= 1;
            shared += 1;
        }
    }
    if total == 0 { 1.0 } else { 2.0 * shared as f64 / total as f64 }
}

fn words(template: &str) -> impl Iterator<Item = &str> {
    template
        .split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '(' | ')' | '=' | ';'))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_compared_by_their_words() {
        assert_eq!(similarity("a b c", "a b c"), 1.0);
        assert_eq!(similarity("", ""), 1.0);
        assert_eq!(similarity("read timed out", ""), 0.0);
        assert_eq!(similarity("read timed out", "connect timed out"), 4.0 / 6.0);
        assert!(similarity("x x x x", "x") < 0.5);
    }
}
