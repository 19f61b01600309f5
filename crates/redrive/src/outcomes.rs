//! Counts of programs that run their jobs themselves, for who holds a [`Redrive`].

use redrive_core::dead::foreign::proxy_label;
use redrive_core::outcomes::{OutcomeCount, WrongCount, forget_before};
use redrive_store::contract::CountOutcomes;

use crate::engine::Redrive;
use crate::error::Error;

/// Counts that are not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("count {at}: {wrong}")]
pub struct OutcomeError {
    /// Which of them is wrong, from 0.
    pub at: usize,
    /// What is wrong with it.
    pub wrong: WrongCount,
}

impl Redrive {
    /// Adds what a program counted of its jobs, all or nothing; says whether it had not come before. `seq` numbers what one client
    /// sends.
    pub async fn count_outcomes(&self, client: &str, seq: u32, mut counts: Vec<OutcomeCount>) -> Result<bool, Error> {
        let now = self.now();
        for (at, count) in counts.iter().enumerate() {
            count.check(now).map_err(|wrong| OutcomeError { at, wrong })?;
        }
        // As letters have them, which they are compared with.
        for proxy in counts.iter_mut().filter_map(|count| count.proxy.as_mut()) {
            *proxy = proxy_label(proxy);
        }
        let params = CountOutcomes {
            client: client.to_owned(),
            seq: seq.into(),
            counts,
            forget_before: forget_before(now),
            now,
        };
        Ok(self.store.count_outcomes(params).await?)
    }
}
