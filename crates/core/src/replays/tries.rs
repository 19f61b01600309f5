//! Tries: what was found out about letters without settling anything, and for how long that is to be believed.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::definitions::DefinitionVersion;
use crate::ids::PipelineName;
use crate::time::Timestamp;

/// How long a try is kept.
pub const TRY_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// The versions of definitions that letters were tried with; nothing for a pipeline whose definition has none.
pub type TriedWith = BTreeMap<PipelineName, Option<DefinitionVersion>>;

/// Why a try is no longer to be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryOutdated {
    /// It is too old.
    TooOld,
    /// This pipeline is defined otherwise by now.
    Redefined(PipelineName),
}

/// Says why a try is no longer to be believed, if it is not: its age, or a pipeline that is defined otherwise now.
pub fn outdated(
    tried_at: Timestamp,
    tried_with: &TriedWith,
    defined: &TriedWith,
    now: Timestamp,
) -> Option<TryOutdated> {
    if now.since(tried_at) > TRY_KEPT {
        return Some(TryOutdated::TooOld);
    }
    let differs =
        |(name, version): &(&PipelineName, &Option<DefinitionVersion>)| tried_with.get(*name) != Some(*version);
    defined.iter().find(differs).map(|(name, _)| TryOutdated::Redefined(name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(version: &str) -> TriedWith {
        let name: PipelineName = "shop".parse().expect("a name");
        BTreeMap::from([(name, Some(DefinitionVersion::new(version)))])
    }

    #[test]
    fn a_try_is_believed_for_a_day_and_for_what_it_was_tried_with() {
        let then = Timestamp::from_millis(1_700_000_000_000);
        let day = Duration::from_secs(86_400);
        assert_eq!(outdated(then, &with("a"), &with("a"), then + day), None);
        let late = then + day + Duration::from_millis(1);
        assert_eq!(outdated(then, &with("a"), &with("a"), late), Some(TryOutdated::TooOld));
        let shop: PipelineName = "shop".parse().expect("a name");
        let redefined = Some(TryOutdated::Redefined(shop));
        assert_eq!(outdated(then, &with("a"), &with("b"), then), redefined);
        assert_eq!(outdated(then, &TriedWith::new(), &with("b"), then), redefined, "it was not tried at all");
        assert_eq!(outdated(then, &with("a"), &TriedWith::new(), then), None, "none of its letters is asked for");
    }
}
