//! Names in paths of addresses, the same for who writes an address and for who is asked by it.

/// What stands before a name of dots alone: who follows an address takes `.` and `..` for steps in it.
const DOTS: char = '~';

/// A name as it is written in a path; one of dots alone is written as `~.` or `~..`.
pub fn in_path(name: &str) -> String {
    if is_dots(name) { format!("{DOTS}{name}") } else { name.to_owned() }
}

/// The name that is written so in a path.
pub fn of_path(text: &str) -> &str {
    text.strip_prefix(DOTS).filter(|name| is_dots(name)).unwrap_or(text)
}

fn is_dots(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_paths_and_dots_alone_are_no_steps() {
        for (name, written) in [("shop", "shop"), (".", "~."), ("..", "~.."), ("a..b", "a..b"), ("~a", "~a")] {
            assert_eq!((in_path(name).as_str(), of_path(written)), (written, name));
        }
    }
}
