//! Answers that are kept for a while, for who holds a [`Redrive`]: a request that is sent again with the same key is answered as the
//! first time.

use std::time::Duration;

use redrive_store::contract::{FindAnswer, KeepAnswer, KeptAnswer};

use crate::engine::Redrive;
use crate::error::Error;

/// How long an answer is kept.
pub const ANSWERS_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Answers that are forgotten in one transaction.
const PIECE: u32 = 500;

impl Redrive {
    /// The answer that was given to a request with this key, if it was given lately.
    pub async fn find_answer(&self, who: &str, key: &str) -> Result<Option<KeptAnswer>, Error> {
        let since = self.now() - ANSWERS_KEPT;
        Ok(self.store.find_answer(FindAnswer { who: who.to_owned(), key: key.to_owned(), since }).await?)
    }

    /// Keeps the answer to a request with this key. One that is too old is replaced.
    pub async fn keep_answer(&self, who: &str, key: &str, answer: KeptAnswer) -> Result<(), Error> {
        self.forget_answers().await?;
        let now = self.now();
        Ok(self.store.keep_answer(KeepAnswer { who: who.to_owned(), key: key.to_owned(), answer, now }).await?)
    }

    /// Forgets a piece of what is too old; says whether there is more.
    pub async fn forget_answers(&self) -> Result<bool, Error> {
        Ok(self.store.forget_answers(self.now() - ANSWERS_KEPT, PIECE).await?)
    }
}
