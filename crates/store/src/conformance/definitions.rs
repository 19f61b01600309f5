//! What must hold of definitions.

use redrive_core::definitions::{Definition, DefinitionVersion};
use redrive_core::failures::Reason;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};

use super::script::{Shared, at, attach, dead, enqueue, fatal, job, lease_one, pipeline, plain, settle_all};
use crate::contract::{DeadFilter, NoteDefinitions, Settled};
use redrive_core::causes::CauseRules;
use redrive_core::policy::Policy;

fn definition(version: &str) -> Definition {
    Definition { version: DefinitionVersion::new(version), text: format!("rules {version}") }
}

async fn note(store: &Shared, version: &str, now: i64) {
    let definitions = vec![(pipeline(), definition(version))];
    store.note_definitions(NoteDefinitions { definitions, now: at(now) }).await.expect("noted");
}

/// What a version said is known for good, with when it was seen.
pub async fn definitions_are_kept_by_version(store: Shared) {
    note(&store, "aa", 1).await;
    note(&store, "bb", 3).await;
    note(&store, "aa", 2).await;
    let known = store.list_definitions(Some(pipeline())).await.expect("listed");
    let seen: Vec<_> = known.iter().map(|d| (d.version.as_str(), d.text.as_str(), d.first_seen, d.last_seen)).collect();
    assert_eq!(seen, [("bb", "rules bb", at(3), at(3)), ("aa", "rules aa", at(1), at(2))]);
    assert_eq!(store.list_definitions(None).await.expect("listed"), known);
    let other = store.list_definitions(Some("other".parse().expect("a name"))).await.expect("listed");
    assert_eq!(other, []);
}

/// A letter and its failures say which rules they failed by.
pub async fn letters_record_the_version_they_were_tried_with(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(1)).await;
    let ending = Ending { at: at(1), duration: None, worker: None, chance: 0.0 };
    let outcome: Outcome = fatal(Reason::SchemaValidation, "no price");
    let decision = decide(&Policy::default(), &leased, outcome, ending);
    let version = DefinitionVersion::new("aa");
    let settlement = Settlement::new(&leased, decision, &CauseRules::default()).tried_with(Some(&version));
    assert_eq!(settle_all(&store, vec![settlement], at(1)).await, [Settled::Applied]);
    let letter = dead(&store, DeadFilter::default()).await.remove(0);
    assert_eq!(letter.definition.as_ref(), Some(&version));
    assert_eq!(letter.failures.expect("failures")[0].definition.as_ref(), Some(&version));
}
