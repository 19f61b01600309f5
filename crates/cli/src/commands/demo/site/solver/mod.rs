//! The tasks of the site's submit-then-poll API, whichever of its two forms they came in by.
//!
//! How a task ends is decided by its sitekey alone. Task ids are made from what was submitted, not from the order of
//! arrival, so that they are the same in every run.

pub(super) mod create_task;
pub(super) mod in_res;

use std::collections::HashMap;

/// The API key that is accepted.
pub const API_KEY: &str = "demo-api-key";
/// The API key of an account without money.
pub const EMPTY_API_KEY: &str = "demo-empty-key";
/// The API key of a client that is banned.
pub const BANNED_API_KEY: &str = "demo-banned-key";

/// How many polls find a task pending before it is done.
const POLLS_PENDING: u32 = 2;

/// How a task of a sitekey ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A token, on the third poll.
    Solved,
    /// The first submission of each page finds no free worker, the next is solved.
    NoSlotOnce,
    /// Accepted and polled like any other, then given up.
    Unsolvable,
    /// The sitekey is refused when it is submitted.
    WrongSitekey,
    /// Pending for ever.
    NeverReady,
    /// Refused with a code that stands in no table.
    UnknownCode,
}

/// A sitekey with the page it stands on, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puzzle {
    /// The sitekey.
    pub sitekey: &'static str,
    /// The path of its page on the site.
    pub path: &'static str,
    /// How its tasks end.
    pub outcome: Outcome,
}

const PUZZLES: [Puzzle; 8] = [
    Puzzle::new("6Ldemo-solved-1", "/products/1", Outcome::Solved),
    Puzzle::new("6Ldemo-solved-2", "/products/2", Outcome::Solved),
    Puzzle::new("6Ldemo-solved-3", "/products/3", Outcome::Solved),
    Puzzle::new("6Ldemo-no-slot", "/products/4", Outcome::NoSlotOnce),
    Puzzle::new("6Ldemo-unsolvable", "/products/5", Outcome::Unsolvable),
    Puzzle::new("6Ldemo-wrong-sitekey", "/products/6", Outcome::WrongSitekey),
    Puzzle::new("6Ldemo-never-ready", "/products/7", Outcome::NeverReady),
    Puzzle::new("6Ldemo-unknown-code", "/products/8", Outcome::UnknownCode),
];

/// All sitekeys that the site knows. Any other is solved.
pub fn puzzles() -> Vec<Puzzle> {
    PUZZLES.to_vec()
}

impl Puzzle {
    const fn new(sitekey: &'static str, path: &'static str, outcome: Outcome) -> Self {
        Self { sitekey, path, outcome }
    }
}

/// Why the API says no. Each form has its own codes for these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NoSuchKey,
    NoMoney,
    Banned,
    NoSlot,
    WrongSitekey,
    NoPage,
    NoSuchTask,
    Unsolvable,
    Unheard,
}

/// All tasks so far.
#[derive(Debug, Default)]
pub(super) struct Solver {
    tasks: HashMap<u64, Task>,
    /// How often a sitekey and page were submitted.
    submissions: HashMap<(String, String), u32>,
}

#[derive(Debug)]
struct Task {
    outcome: Outcome,
    token: String,
    polls: u32,
}

impl Solver {
    /// Takes a task in and says its id.
    pub(super) fn submit(&mut self, key: &str, sitekey: &str, page: &str) -> Result<u64, Refusal> {
        check_key(key)?;
        if sitekey.is_empty() {
            return Err(Refusal::WrongSitekey);
        }
        if page.is_empty() {
            return Err(Refusal::NoPage);
        }
        let submissions = self.submissions.entry((sitekey.to_owned(), page.to_owned())).or_default();
        *submissions += 1;
        let outcome = outcome_of(sitekey);
        match outcome {
            Outcome::NoSlotOnce if *submissions == 1 => return Err(Refusal::NoSlot),
            Outcome::WrongSitekey => return Err(Refusal::WrongSitekey),
            Outcome::UnknownCode => return Err(Refusal::Unheard),
            _ => {}
        }
        let mixed = fnv1a(&format!("{sitekey} {}", path_of(page)));
        let mut id = 10_000_000 + (mixed + u64::from(*submissions)) % 80_000_000;
        while self.tasks.contains_key(&id) {
            id += 1;
        }
        self.tasks.insert(id, Task { outcome, token: format!("03AGdBq-{mixed:016x}"), polls: 0 });
        Ok(id)
    }

    /// The token of a task, or nothing while it is pending.
    pub(super) fn poll(&mut self, key: &str, id: u64) -> Result<Option<String>, Refusal> {
        check_key(key)?;
        let task = self.tasks.get_mut(&id).ok_or(Refusal::NoSuchTask)?;
        task.polls += 1;
        match task.outcome {
            Outcome::NeverReady => Ok(None),
            _ if task.polls <= POLLS_PENDING => Ok(None),
            Outcome::Unsolvable => Err(Refusal::Unsolvable),
            _ => Ok(Some(task.token.clone())),
        }
    }
}

fn check_key(key: &str) -> Result<(), Refusal> {
    match key {
        API_KEY => Ok(()),
        EMPTY_API_KEY => Err(Refusal::NoMoney),
        BANNED_API_KEY => Err(Refusal::Banned),
        _ => Err(Refusal::NoSuchKey),
    }
}

fn outcome_of(sitekey: &str) -> Outcome {
    PUZZLES.iter().find(|puzzle| puzzle.sitekey == sitekey).map_or(Outcome::Solved, |puzzle| puzzle.outcome)
}

/// Without scheme and port: the site's port differs from run to run, a task's id and token must not.
fn path_of(page: &str) -> &str {
    let rest = page.split_once("://").map_or(page, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// Small, and stable across compilers, which the standard hasher does not promise to be.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
