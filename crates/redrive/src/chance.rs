//! The source of randomness, passed in.

use std::sync::{Mutex, PoisonError};

/// Random numbers.
pub trait Chance: Send + Sync {
    /// A number in `[0, 1)`.
    fn fraction(&self) -> f64;

    /// 128 random bits.
    fn bits(&self) -> u128;

    /// 128 random bits that nobody can guess, for what is a right in who has it.
    fn secret_bits(&self) -> u128 {
        self.bits()
    }
}

/// Different every time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemChance;

impl Chance for SystemChance {
    fn fraction(&self) -> f64 {
        fastrand::f64()
    }

    fn bits(&self) -> u128 {
        fastrand::u128(..)
    }

    fn secret_bits(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system has a random source");
        u128::from_ne_bytes(bytes)
    }
}

/// The same every time.
#[derive(Debug)]
pub struct SeededChance(Mutex<fastrand::Rng>);

impl SeededChance {
    /// Numbers that follow from a seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Chance for SeededChance {
    fn fraction(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }

    fn bits(&self) -> u128 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).u128(..)
    }
}
