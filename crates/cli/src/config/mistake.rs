//! Errors in `redrive.toml` that name the line and, for a wrong key, the nearest right one.

/// Says what is wrong, where, and what was probably meant.
pub fn explain(error: &toml::de::Error, text: &str, path: &str) -> String {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message();
    match unknown(message).and_then(|(wrong, right)| nearest(wrong, &right)) {
        Some(meant) => format!("{path}:{line}: {message}; did you mean `{meant}`?"),
        None => format!("{path}:{line}: {message}"),
    }
}

/// The wrong word and the right ones, from "unknown field `a`, expected one of `b`, `c`".
fn unknown(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field ").or_else(|| message.strip_prefix("unknown variant "))?;
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    Some((wrong, quoted.collect()))
}

/// The word that is most like the wrong one, if any is like it at all.
fn nearest<'a>(wrong: &str, right: &[&'a str]) -> Option<&'a str> {
    let alike = |word: &&str| strsim::jaro_winkler(wrong, word);
    let best = right.iter().copied().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(&best) > 0.7).then_some(best)
}
