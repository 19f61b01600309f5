//! What died as people are told of it: causes that differ only in their target are one line, however many there are.

use std::collections::{BTreeSet, HashMap};

use redrive::dead::CauseDied;

/// Stands for the target in a title that is that of several.
const SOME_TARGET: &str = "…";

/// Causes of one reason that say the same.
pub struct Told<'a> {
    /// The worst of them.
    pub first: &'a CauseDied,
    /// What they say.
    pub title: String,
    /// How many died of them.
    pub count: u64,
    /// How many causes they are.
    pub causes: usize,
    /// Their targets.
    pub targets: BTreeSet<&'a str>,
}

/// Causes, the worst first, with those folded that say the same of other targets; the worst of what that gives first.
pub fn told(causes: &[CauseDied]) -> Vec<Told<'_>> {
    let (mut told, mut places): (Vec<Told<'_>>, HashMap<_, usize>) = Default::default();
    for cause in causes {
        let target = cause.example.target.as_deref().filter(|target| !target.is_empty());
        let title = target.map_or_else(|| cause.title.clone(), |target| cause.title.replace(target, SOME_TARGET));
        let place = *places.entry((cause.reason, title.clone())).or_insert(told.len());
        match told.get_mut(place) {
            Some(known) => {
                (known.title, known.count, known.causes) = (title, known.count + cause.count, known.causes + 1);
                known.targets.extend(target);
            }
            None => told.push(Told {
                first: cause,
                title: cause.title.clone(),
                count: cause.count,
                causes: 1,
                targets: target.into_iter().collect(),
            }),
        }
    }
    told.sort_by_key(|told| std::cmp::Reverse(told.count));
    told
}
