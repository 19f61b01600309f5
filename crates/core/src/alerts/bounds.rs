//! What a share is at least, and at most, given how many were counted: Wilson's score interval at 95 %.

use serde::{Deserialize, Serialize};

/// The quantile of the normal distribution for 95 %, both sides.
const Z: f64 = 1.96;

/// Some of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Those.
    pub part: u64,
    /// All.
    pub whole: u64,
}

impl Share {
    /// So many of so many.
    pub const fn new(part: u64, whole: u64) -> Self {
        Self { part, whole }
    }

    /// The share that was counted; zero if nothing was.
    pub fn value(self) -> f64 {
        if self.whole == 0 { 0.0 } else { self.part.min(self.whole) as f64 / self.whole as f64 }
    }

    /// What it is at least.
    pub fn at_least(self) -> f64 {
        self.bound(-1.0)
    }

    /// What it is at most.
    pub fn at_most(self) -> f64 {
        self.bound(1.0)
    }

    fn bound(self, side: f64) -> f64 {
        if self.whole == 0 {
            return if side < 0.0 { 0.0 } else { 1.0 };
        }
        let (n, p) = (self.whole as f64, self.value());
        let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        ((p + Z * Z / (2.0 * n) + side * spread) / (1.0 + Z * Z / n)).clamp(0.0, 1.0)
    }
}

impl std::ops::Add for Share {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { part: self.part + other.part, whole: self.whole + other.whole }
    }
}

impl std::iter::Sum for Share {
    fn sum<I: Iterator<Item = Self>>(shares: I) -> Self {
        shares.fold(Self::default(), std::ops::Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.000_5
    }

    /// Values as other implementations of the same interval give them.
    #[test]
    fn known_intervals() {
        for (part, whole, low, high) in [(5, 100, 0.021_5, 0.111_8), (0, 20, 0.0, 0.161_1), (5, 5, 0.565_5, 1.0)] {
            let share = Share::new(part, whole);
            assert!(near(share.at_least(), low) && near(share.at_most(), high), "{share:?}");
        }
        assert_eq!((Share::default().at_least(), Share::default().at_most()), (0.0, 1.0));
    }

    proptest! {
        #[test]
        fn the_share_lies_between_its_bounds(part in 0_u64..5_000, more in 0_u64..5_000) {
            let share = Share::new(part, part + more);
            prop_assert!(share.at_least() <= share.value() + 1e-9);
            prop_assert!(share.whole == 0 || share.value() <= share.at_most() + 1e-9);
            let twice = share + share;
            prop_assert!(twice.at_least() >= share.at_least() - 1e-9, "more of the same is surer");
        }
    }
}
