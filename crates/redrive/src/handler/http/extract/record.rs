//! Putting a record together, and what there is of one that lacks something.

use serde_json::{Map, Value};

use super::miss::{Lack, Misses};

/// A record that lacks fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{misses}")]
pub struct Partial {
    /// What it lacks.
    pub misses: Misses,
    /// What it has.
    pub(super) found: Map<String, Value>,
}

impl From<Partial> for Lack {
    fn from(partial: Partial) -> Self {
        Self::Inner(partial.misses)
    }
}

/// All fields, in the order of the rules; those that are amiss do not keep the others from being looked at.
pub(super) fn collect<'a>(
    fields: impl Iterator<Item = (&'a str, Result<Value, Misses>)>,
) -> Result<Map<String, Value>, Partial> {
    let (mut found, mut amiss) = (Map::new(), None);
    for (name, value) in fields {
        match value {
            Ok(value) => drop(found.insert(name.to_owned(), value)),
            Err(misses) => Misses::join(&mut amiss, misses),
        }
    }
    match amiss {
        None => Ok(found),
        Some(misses) => Err(Partial { misses, found }),
    }
}
