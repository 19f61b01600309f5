//! Taking in dead letters of another store: each is checked at the door, and those that are fit are handed to the store.

use redrive_core::dead::DeadLetter;
use redrive_core::dead::import::{Arrival, Unfit, check};
use redrive_store::contract::{BroughtLetter, ImportDead};

use crate::engine::Redrive;
use crate::error::Error;

impl Redrive {
    /// Takes in dead letters, in one transaction, and says what became of each. Taking in the same letters again changes
    /// nothing.
    pub async fn import_dead(&self, letters: Vec<DeadLetter>) -> Result<Vec<Result<Arrival, Unfit>>, Error> {
        let now = self.now();
        let checked: Vec<Result<(), Unfit>> = letters.iter().map(|letter| check(letter, now)).collect();
        let fit = letters.into_iter().zip(&checked).filter_map(|(letter, checked)| checked.is_ok().then_some(letter));
        let rules = self.cause_rules().await?;
        let letters = fit.filter_map(|letter| BroughtLetter::recognised(letter, &rules)).collect();
        let params = ImportDead { letters, now };
        let mut arrivals = self.store.import_dead(params).await?.into_iter();
        let missing = || Error::Internal("the store did not say what became of a letter".to_owned());
        let arrived = |checked: Result<(), Unfit>| match checked {
            Ok(()) => arrivals.next().map(Ok).ok_or_else(missing),
            Err(unfit) => Ok(Err(unfit)),
        };
        checked.into_iter().map(arrived).collect()
    }
}
