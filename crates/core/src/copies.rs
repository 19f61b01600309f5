//! Copies of a store: what both sides note of one, and whether it may begin, goes on or is over.
//!
//! The source is marked first, then the target. Both marks have the id of the copy: a target that was begun goes on only from the
//! source that nobody could write to since.

use serde::Serialize;

use crate::ids::CopyId;
use crate::payloads::StoreId;
use crate::time::Timestamp;

/// What a store notes of a copy that it is the source or the target of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopyNote {
    /// Which copy.
    pub id: CopyId,
    /// Where the other store is.
    pub place: String,
    /// The other store's id.
    #[serde(skip)]
    pub store: StoreId,
    /// The vault that the payloads come to, if they come to any.
    pub vault: Option<String>,
    /// When it was begun.
    pub begun_at: Timestamp,
    /// When all of it had come over.
    pub finished_at: Option<Timestamp>,
}

/// The copies that a store takes part in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// It is being copied to another: nothing can be written to it meanwhile.
    pub to: Option<CopyNote>,
    /// It is being filled from another, or was.
    pub from: Option<CopyNote>,
}

/// A store that is to be copied, or to be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySide {
    /// Where it is.
    pub place: String,
    /// Its id.
    pub store: StoreId,
    /// The copies that it takes part in.
    pub copies: Copies,
}

/// What is to be done about a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyStep {
    /// It begins.
    Begin,
    /// It goes on where it was.
    GoOn(CopyId),
    /// All has come over; only the source is still marked.
    Release(CopyNote),
    /// It is over.
    Over(CopyNote),
}

/// Why a store is not copied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyRefused {
    /// Both are the same.
    #[error("{0} cannot be copied to itself")]
    Itself(String),
    /// The source is being copied to another store.
    #[error("{source_place} is being copied to {place}, which is not finished")]
    Elsewhere {
        /// The source.
        source_place: String,
        /// The other target.
        place: String,
    },
    /// The target is, or was, filled from another store.
    #[error("{target} was filled from {place}")]
    OfAnother {
        /// The target.
        target: String,
        /// The other source.
        place: String,
    },
    /// The target is itself being copied.
    #[error("{target} is being copied to {place} itself")]
    TargetIsCopied {
        /// The target.
        target: String,
        /// Where to.
        place: String,
    },
    /// The source could be written to since the copy was begun.
    #[error("{target} is an unfinished copy of {source_place}, which was released since and may have been worked on")]
    Released {
        /// The source.
        source_place: String,
        /// The target.
        target: String,
    },
    /// The copy was begun with another vault.
    #[error("the copy to {target} was begun with {}, and not with {}", named(.begun), named(.given))]
    OtherVault {
        /// The target.
        target: String,
        /// The vault it was begun with.
        begun: Option<String>,
        /// The vault that was named now.
        given: Option<String>,
    },
}

fn named(vault: &Option<String>) -> String {
    vault.as_ref().map_or_else(|| "no vault".to_owned(), |vault| format!("the vault {vault}"))
}

/// Decides whether a copy begins, goes on or is over. `vault` is where the payloads are to come to.
pub fn next(source: &CopySide, target: &CopySide, vault: Option<&str>) -> Result<CopyStep, CopyRefused> {
    let (from, to) = (source.place.clone(), target.place.clone());
    if source.store == target.store {
        return Err(CopyRefused::Itself(from));
    }
    if let Some(note) = &target.copies.to {
        return Err(CopyRefused::TargetIsCopied { target: to, place: note.place.clone() });
    }
    let marked = source.copies.to.as_ref();
    let Some(note) = &target.copies.from else {
        // A target that was begun and thrown away since has another id at the same place.
        return match marked.filter(|mark| mark.store != target.store && mark.place != target.place) {
            Some(mark) => Err(CopyRefused::Elsewhere { source_place: from, place: mark.place.clone() }),
            None => Ok(CopyStep::Begin),
        };
    };
    let is_this_copy = marked.is_some_and(|mark| mark.id == note.id);
    if !is_this_copy && note.store != source.store {
        return Err(CopyRefused::OfAnother { target: to, place: note.place.clone() });
    }
    match (note.finished_at, is_this_copy) {
        (Some(_), true) => Ok(CopyStep::Release(note.clone())),
        (Some(_), false) => Ok(CopyStep::Over(note.clone())),
        (None, false) => Err(CopyRefused::Released { source_place: from, target: to }),
        (None, true) if note.vault.as_deref() != vault => {
            Err(CopyRefused::OtherVault { target: to, begun: note.vault.clone(), given: vault.map(str::to_owned) })
        }
        (None, true) => Ok(CopyStep::GoOn(note.id)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(n: u8) -> StoreId {
        format!("{n:032x}").parse().expect("an id")
    }

    fn side(n: u8) -> CopySide {
        CopySide { place: format!("store {n}"), store: store(n), copies: Copies::default() }
    }

    fn note(copy: u128, other: u8) -> CopyNote {
        let id = CopyId::new(Timestamp::from_millis(0), copy);
        let begun_at = Timestamp::from_millis(1);
        CopyNote { id, place: format!("store {other}"), store: store(other), vault: None, begun_at, finished_at: None }
    }

    /// A copy of the first store to the second that was begun.
    fn begun() -> (CopySide, CopySide) {
        let (mut source, mut target) = (side(1), side(2));
        source.copies.to = Some(note(7, 2));
        target.copies.from = Some(note(7, 1));
        (source, target)
    }

    #[test]
    fn a_copy_begins_goes_on_and_is_over() {
        assert_eq!(next(&side(1), &side(2), None), Ok(CopyStep::Begin));
        let (mut source, mut target) = begun();
        assert_eq!(next(&source, &target, None), Ok(CopyStep::GoOn(note(7, 1).id)));
        let finished = CopyNote { finished_at: Some(Timestamp::from_millis(9)), ..note(7, 1) };
        target.copies.from = Some(finished.clone());
        assert_eq!(next(&source, &target, None), Ok(CopyStep::Release(finished.clone())));
        source.copies.to = None;
        assert_eq!(next(&source, &target, None), Ok(CopyStep::Over(finished)));
    }

    #[test]
    fn a_source_that_was_marked_and_never_copied_begins_anew() {
        let (source, _) = begun();
        assert_eq!(next(&source, &side(2), None), Ok(CopyStep::Begin), "killed between the two marks");
        let anew = CopySide { store: store(9), ..side(2) };
        assert_eq!(next(&source, &anew, None), Ok(CopyStep::Begin), "the target was thrown away");
        assert!(matches!(next(&source, &side(3), None), Err(CopyRefused::Elsewhere { .. })));
    }

    #[test]
    fn nothing_goes_on_from_what_may_have_changed() {
        let (mut source, target) = begun();
        source.copies.to = None;
        assert!(matches!(next(&source, &target, None), Err(CopyRefused::Released { .. })));
        source.copies.to = Some(note(8, 2));
        assert!(matches!(next(&source, &target, None), Err(CopyRefused::Released { .. })), "another copy of it");
    }

    #[test]
    fn a_copy_goes_on_with_the_vault_it_was_begun_with() {
        let (source, mut target) = begun();
        assert!(matches!(next(&source, &target, Some("s3://b")), Err(CopyRefused::OtherVault { .. })));
        target.copies.from = Some(CopyNote { vault: Some("s3://b".into()), ..note(7, 1) });
        assert_eq!(next(&source, &target, Some("s3://b")), Ok(CopyStep::GoOn(note(7, 1).id)));
        let said = next(&source, &target, None).expect_err("refused").to_string();
        assert_eq!(said, "the copy to store 2 was begun with the vault s3://b, and not with no vault");
    }

    #[test]
    fn stores_that_belong_to_others_are_refused() {
        assert!(matches!(next(&side(1), &side(1), None), Err(CopyRefused::Itself(_))));
        let (source, target) = begun();
        assert!(matches!(next(&side(3), &target, None), Err(CopyRefused::OfAnother { .. })));
        assert!(matches!(next(&side(3), &source, None), Err(CopyRefused::TargetIsCopied { .. })));
    }

    /// A file that was moved has another id by then, and is marked all the same.
    #[test]
    fn a_source_that_was_moved_goes_on() {
        let (mut source, target) = begun();
        source.store = store(5);
        assert_eq!(next(&source, &target, None), Ok(CopyStep::GoOn(note(7, 1).id)));
    }
}
