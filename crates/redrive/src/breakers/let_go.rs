//! How many tasks go on when the breaker of a target is closed: those of replays that are paused wait for these.

use redrive_core::breakers::BreakerView;
use redrive_core::replays::ReplayState;
use redrive_store::contract::{ListReplays, ReplayView};

use crate::engine::Redrive;
use crate::error::Error;

/// Open replays that are looked at.
const REPLAYS_MAX: u32 = 50;

/// What becomes of the tasks that wait for a target when its breaker is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LetGo {
    /// Tasks that go on.
    pub go: u64,
    /// Tasks of replays that are paused.
    pub rest: u64,
    /// Tasks of replays of which some are paused and some are not: nobody counts them apart.
    pub either: u64,
}

impl LetGo {
    /// The most tasks that go.
    pub const fn most(self) -> u64 {
        self.go + self.either
    }

    /// Whether many more go than somebody was told, who is to be asked again: while a target is waited for, some come all the time.
    pub const fn is_much_more_than(self, told: u64) -> bool {
        self.most() > told + told / 10
    }
}

impl Redrive {
    /// What becomes of the tasks that wait for a target when its breaker is closed.
    pub async fn let_go(&self, view: &BreakerView) -> Result<LetGo, Error> {
        let open = ListReplays::open(REPLAYS_MAX);
        let mut replays = self.store.list_replays(open).await?.items;
        replays.retain(|replay| replay.progress.running > 0 && replay.pipelines.contains(&view.pipeline));
        Ok(parted(view.held, view.held_of_replays, &replays))
    }
}

/// Parts tasks that are held, some of them by replays, by what those replays do.
fn parted(held: u64, of_replays: u64, replays: &[ReplayView]) -> LetGo {
    let paused = replays.iter().filter(|replay| replay.state == ReplayState::Paused).count();
    split(held, of_replays, (paused, replays.len() - paused))
}

const fn split(held: u64, of_replays: u64, replays: (usize, usize)) -> LetGo {
    let own = held.saturating_sub(of_replays);
    match replays {
        (0, _) => LetGo { go: held, rest: 0, either: 0 },
        (_, 0) => LetGo { go: own, rest: of_replays, either: 0 },
        _ => LetGo { go: own, rest: 0, either: of_replays },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_paused_replay_sent_does_not_go() {
        assert_eq!(split(5, 2, (0, 1)), LetGo { go: 5, rest: 0, either: 0 });
        assert_eq!(split(5, 2, (1, 0)), LetGo { go: 3, rest: 2, either: 0 });
        assert_eq!(split(2, 2, (1, 0)), LetGo { go: 0, rest: 2, either: 0 });
        assert_eq!(split(5, 2, (1, 1)), LetGo { go: 3, rest: 0, either: 2 });
    }

    #[test]
    fn who_was_told_of_far_fewer_is_asked_again() {
        let going = LetGo { go: 40, rest: 7, either: 4 };
        assert!(going.is_much_more_than(39) && !going.is_much_more_than(40) && !going.is_much_more_than(50));
        assert!(LetGo { go: 1, rest: 0, either: 0 }.is_much_more_than(0));
    }
}
