//! Lanes: where queued jobs wait until they are due, as far as every backend calls them the same. The queue of a pipeline has the
//! pipeline's number; the others have a name.

/// The name of the lane of what a replay sent.
pub(crate) fn replay_name(replay: i64) -> String {
    format!("r{replay}")
}

/// The name of the lane of what is held of a target, beside the queue or beside what a replay sent.
pub(crate) fn held_name(sent_by: Option<i64>, target: &str) -> String {
    match sent_by {
        Some(replay) => format!("r{replay}h{target}"),
        None => format!("h{target}"),
    }
}

/// How the names of all lanes of what is held beside a lane begin, and before which text they come.
pub(crate) fn held_range(sent_by: Option<i64>) -> (String, String) {
    let from = held_name(sent_by, "");
    // Text that begins with an `h` where others have an `i` comes before them.
    let to = format!("{}i", from.trim_end_matches('h'));
    (from, to)
}
