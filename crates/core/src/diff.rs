//! What two lists of lines do not have in common: Myers' algorithm, with a bound on how different they may be.

use std::collections::HashMap;

/// The most lines that differ; beyond that the rest is taken as wholly different.
const EDITS_MAX: usize = 2_000;

/// A line of either list, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// In both, by their places.
    Same(usize, usize),
    /// Only in the first.
    First(usize),
    /// Only in the second.
    Second(usize),
}

/// The edits that lead from the first list to the second, in order.
pub fn diff(first: &[&str], second: &[&str]) -> Vec<Edit> {
    let mut names = HashMap::new();
    let (a, b) = (numbered(first, &mut names), numbered(second, &mut names));
    let before = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let after = a[before..].iter().rev().zip(b[before..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (inner_a, inner_b) = (&a[before..a.len() - after], &b[before..b.len() - after]);
    let mut edits: Vec<Edit> = (0..before).map(|n| Edit::Same(n, n)).collect();
    edits.extend(middle(inner_a, inner_b).into_iter().map(|edit| match edit {
        Edit::Same(x, y) => Edit::Same(x + before, y + before),
        Edit::First(x) => Edit::First(x + before),
        Edit::Second(y) => Edit::Second(y + before),
    }));
    edits.extend((0..after).map(|n| Edit::Same(a.len() - after + n, b.len() - after + n)));
    edits
}

fn numbered<'a>(lines: &[&'a str], names: &mut HashMap<&'a str, usize>) -> Vec<usize> {
    let mut number = |line: &'a str| {
        let next = names.len();
        *names.entry(line).or_insert(next)
    };
    lines.iter().map(|line| number(line)).collect()
}

/// The shortest list of edits, if it is not too long; else all of the first, then all of the second.
fn middle(a: &[usize], b: &[usize]) -> Vec<Edit> {
    let most = (a.len() + b.len()).min(EDITS_MAX);
    // How far along the first list each diagonal gets, for each number of edits.
    let mut trace: Vec<Vec<usize>> = Vec::new();
    let mut reach = vec![0_usize; 2 * most + 3];
    for edits in 0..=most {
        let mut ended = false;
        for k in (0..=2 * edits).step_by(2).map(|k| k as isize - edits as isize) {
            let at = (k + most as isize + 1) as usize;
            let down = edits == 0 || k == -(edits as isize) || (k != edits as isize && reach[at - 1] < reach[at + 1]);
            let mut x = if down { if edits == 0 { 0 } else { reach[at + 1] } } else { reach[at - 1] + 1 };
            let mut y = (x as isize - k).max(0) as usize;
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            reach[at] = x;
            ended |= x >= a.len() && y >= b.len();
        }
        trace.push(reach[most + 1 - edits..=most + 1 + edits].to_vec());
        if ended {
            return back(&trace, a.len(), b.len());
        }
    }
    (0..a.len()).map(Edit::First).chain((0..b.len()).map(Edit::Second)).collect()
}

/// Walks back from the end to the beginning.
fn back(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    for d in (0..trace.len()).rev() {
        let k = x as isize - y as isize;
        let reached =
            |d: usize, k: isize| -> Option<usize> { trace[d].get(usize::try_from(k + d as isize).ok()?).copied() };
        let (from_x, from_y) = match d {
            0 => (0, 0),
            _ => {
                let (left, right) = (reached(d - 1, k - 1), reached(d - 1, k + 1));
                let down = k == -(d as isize) || (k != d as isize && left < right);
                let from = if down { right.unwrap_or(0) } else { left.unwrap_or(0) };
                let from_k = if down { k + 1 } else { k - 1 };
                (from, (from as isize - from_k).max(0) as usize)
            }
        };
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            edits.push(Edit::Same(x, y));
        }
        if d > 0 {
            edits.push(if x == from_x { Edit::Second(from_y) } else { Edit::First(from_x) });
        }
        (x, y) = (from_x, from_y);
    }
    edits.reverse();
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether the edits take every line of both lists once, in order, and call the same only what is.
    fn is_right(first: &[&str], second: &[&str]) -> usize {
        let (mut x, mut y, mut changed) = (0, 0, 0);
        for edit in diff(first, second) {
            match edit {
                Edit::Same(a, b) => {
                    assert_eq!((a, b, first[a]), (x, y, second[b]));
                    (x, y) = (x + 1, y + 1);
                }
                Edit::First(a) => {
                    assert_eq!(a, x);
                    (x, changed) = (x + 1, changed + 1);
                }
                Edit::Second(b) => {
                    assert_eq!(b, y);
                    (y, changed) = (y + 1, changed + 1);
                }
            }
        }
        assert_eq!((x, y), (first.len(), second.len()));
        changed
    }

    #[test]
    fn what_was_put_in_is_found() {
        assert_eq!(is_right(&["a", "b", "c"], &["a", "b", "c"]), 0);
        assert_eq!(is_right(&["a", "c"], &["a", "b", "c"]), 1);
        assert_eq!(is_right(&["a", "x", "c"], &["a", "b", "c", "d"]), 3);
        assert_eq!(is_right(&[], &["a"]), 1);
        assert_eq!(is_right(&["a", "b", "c", "a", "b", "b", "a"], &["c", "b", "a", "b", "a", "c"]), 5);
    }

    #[test]
    fn lists_that_share_nothing_are_wholly_different() {
        let (a, b): (Vec<String>, Vec<String>) =
            ((0..5_000).map(|n| format!("a{n}")).collect(), (0..5_000).map(|n| format!("b{n}")).collect());
        let (a, b): (Vec<&str>, Vec<&str>) =
            (a.iter().map(String::as_str).collect(), b.iter().map(String::as_str).collect());
        assert_eq!(is_right(&a, &b), 10_000);
    }

    proptest! {
        #[test]
        fn any_two_lists(a in prop::collection::vec(0_usize..5, 0..30), b in prop::collection::vec(0_usize..5, 0..30)) {
            let names = ["a", "b", "c", "d", "e"];
            let of = |list: &[usize]| list.iter().map(|n| names[*n]).collect::<Vec<_>>();
            is_right(&of(&a), &of(&b));
        }
    }
}
