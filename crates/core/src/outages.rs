//! Outages: for how long a store that does not answer is waited for, how often it is tried meanwhile, and when that is spoken of.

use std::time::Duration;

/// The first and the longest rest between two tries.
const RESTS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// For how long a command waits.
pub const COMMAND_WAITS: Duration = Duration::from_secs(30);

/// What is over before that is not spoken of.
pub const SAID_AFTER: Duration = Duration::from_secs(1);

/// How long after an outage nobody is taken for silent and no lease for run out: who lives had no way to show it meanwhile, and comes
/// back within that time.
pub const FORGIVEN_FOR: Duration = Duration::from_secs(10);

/// What keeps a store from answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Others keep it busy, and were waited for already.
    Locked,
    /// It cannot be reached, or does not answer.
    Away,
    /// Its disk is full.
    Full,
}

/// Who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A command, which somebody sits before.
    Command,
    /// A worker that opens its store: it has no jobs yet, and whoever started it may mend what is wrong on this machine.
    Starting,
    /// A worker: it has jobs, and nobody who would start it again.
    Worker,
    /// A worker that was told to stop and has no time left.
    Leaving,
}

impl Waiter {
    /// Whether to try again after having waited for so long.
    pub fn goes_on(self, obstacle: Obstacle, waited: Duration) -> bool {
        match self {
            Self::Worker => true,
            Self::Starting => obstacle == Obstacle::Away,
            Self::Command => obstacle == Obstacle::Away && waited < COMMAND_WAITS,
            Self::Leaving => false,
        }
    }
}

/// The rest before another try, after so many: twice as long each time, and uneven, by a chance between 0 and 1, so that those who
/// lost the same server do not all come back at the same moment.
pub fn rest(tries: u32, chance: f64) -> Duration {
    let even = RESTS.0.saturating_mul(1 << tries.min(16)).min(RESTS.1);
    even.mul_f64(0.5 + chance.clamp(0.0, 1.0)).min(RESTS.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_up_to_five_seconds_and_are_uneven() {
        let rests: Vec<u128> = (0..9).map(|tries| rest(tries, 0.5).as_millis()).collect();
        assert_eq!(rests, [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!((rest(0, 0.0), rest(0, 1.0)), (Duration::from_millis(25), Duration::from_millis(75)));
        assert_eq!(rest(u32::MAX, 1.0), RESTS.1);
        assert!(rest(u32::MAX, 0.0) < rest(u32::MAX, 0.4));
    }

    #[test]
    fn a_command_gives_up_after_half_a_minute_and_a_worker_never() {
        let (early, late) = (Duration::from_secs(29), Duration::from_secs(30));
        assert!(Waiter::Command.goes_on(Obstacle::Away, early) && !Waiter::Command.goes_on(Obstacle::Away, late));
        for obstacle in [Obstacle::Locked, Obstacle::Away, Obstacle::Full] {
            assert!(Waiter::Worker.goes_on(obstacle, Duration::from_secs(86_400)));
            assert!(!Waiter::Leaving.goes_on(obstacle, Duration::ZERO));
        }
    }

    #[test]
    fn a_worker_that_starts_waits_for_a_server_and_not_for_room() {
        assert!(Waiter::Starting.goes_on(Obstacle::Away, Duration::from_secs(86_400)));
        for obstacle in [Obstacle::Locked, Obstacle::Full] {
            assert!(!Waiter::Starting.goes_on(obstacle, Duration::ZERO));
        }
    }

    #[test]
    fn a_command_says_at_once_that_the_disk_is_full_or_others_hold_the_store() {
        assert!(!Waiter::Command.goes_on(Obstacle::Full, Duration::ZERO));
        assert!(!Waiter::Command.goes_on(Obstacle::Locked, Duration::ZERO));
    }
}
