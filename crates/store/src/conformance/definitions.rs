//! What must hold of definitions.

use redrive_core::causes::CauseRules;
use redrive_core::definitions::{Definition, DefinitionVersion, KeptCommand, Pins, ResultsFile};
use redrive_core::failures::Reason;
use redrive_core::policy::Policy;
use redrive_core::replays::NextReplay;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};

use super::replays::{advance, at_once, bury_some, get, replay_id, start};
use super::script::{
    Shared, at, attach, beat, bury, dead, enqueue, fatal, job, lease_of, lease_one, lease_past_breakers, pipeline,
    plain, settle_all,
};
use crate::contract::{AttachWorker, DeadFilter, Lane, LeaseJobs, NoteDefinitions, Selection, SetReplay, Settled};

fn definition(version: &str) -> Definition {
    Definition { text: format!("rules {version}"), ..Definition::of_version(DefinitionVersion::new(version)) }
}

async fn note(store: &Shared, version: &str, now: i64) {
    let definitions = vec![(pipeline(), definition(version))];
    let attach = AttachWorker { beat: beat(1, Vec::new(), at(now)), definitions, uptime: None };
    let looked = store.attach_worker(attach).await.expect("noted");
    assert_eq!((looked.jumped, store.list_workers().await.expect("listed").len()), (None, 1), "it is there");
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

/// Definitions of remote workers are kept, also if one is noted again by an earlier clock.
pub async fn definitions_of_workers_elsewhere_are_kept(store: Shared) {
    for (version, now) in [("aa", 2), ("bb", 3), ("aa", 1)] {
        let definitions = vec![(pipeline(), definition(version))];
        store.note_definitions(NoteDefinitions { definitions, now: at(now) }).await.expect("noted");
    }
    let known = store.list_definitions(None).await.expect("listed");
    let seen: Vec<_> = known.iter().map(|d| (d.version.as_str(), d.text.as_str(), d.first_seen, d.last_seen)).collect();
    assert_eq!(seen, [("bb", "rules bb", at(3), at(3)), ("aa", "rules aa", at(2), at(2))]);
    assert!(store.list_workers().await.expect("listed").is_empty());
}

/// The file that results went to is known by version. To work without one forgets nothing.
pub async fn files_of_results_are_kept_by_version(store: Shared) {
    let worked = async |version: &str, path: Option<&str>, now: i64| {
        let results = path.map(|path| ResultsFile { path: path.into(), bare: true });
        let definition = Definition { results, ..definition(version) };
        let beat = beat(1, Vec::new(), at(now));
        let attach = AttachWorker { beat, definitions: vec![(pipeline(), definition)], uptime: None };
        store.attach_worker(attach).await.expect("noted");
    };
    for (version, path, now) in [("aa", Some("/a"), 1), ("bb", None, 2), ("aa", Some("/b"), 3), ("aa", None, 4)] {
        worked(version, path, now).await;
    }
    let known = store.list_definitions(Some(pipeline())).await.expect("listed");
    let results: Vec<_> = known.into_iter().map(|known| known.results).collect();
    assert_eq!(results, [Some(ResultsFile { path: "/b".into(), bare: true }), None]);
}

/// A command that ran in two folders is kept with both: neither takes the other's place.
pub async fn commands_are_kept_with_every_folder_that_they_ran_in(store: Shared) {
    let ran_in = async |version: &str, folder: &str, now: i64| {
        let command = KeptCommand { words: vec!["sh".into()], folder: folder.into(), ..KeptCommand::default() };
        let definition = Definition { command: Some(command), ..definition(version) };
        let beat = beat(1, Vec::new(), at(now));
        let attach = AttachWorker { beat, definitions: vec![(pipeline(), definition)], uptime: None };
        store.attach_worker(attach).await.expect("noted");
    };
    for (version, folder, now) in [("aa", "/one", 1), ("bb", "/one", 2), ("aa", "/two", 3), ("aa", "/one", 4)] {
        ran_in(version, folder, now).await;
    }
    let known = store.list_definitions(Some(pipeline())).await.expect("listed");
    let folders = |version: &str| {
        let found = known.iter().find(|found| found.version.as_str() == version).expect("known");
        found.commands.iter().map(|command| command.folder.clone()).collect::<Vec<_>>()
    };
    assert_eq!((known.len(), folders("aa"), folders("bb").len()), (2, vec!["/one".to_owned(), "/two".to_owned()], 1));
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
    let tried = async |letters: Selection| store.list_tried_versions(letters).await.expect("listed");
    let of = |name: &str| DeadFilter { pipeline: Some(name.parse().expect("a name")), ..DeadFilter::default() };
    let one = Selection { ids: vec![letter.id], ..Selection::default() };
    assert_eq!(tried(one).await, [Some(version.clone())]);
    assert_eq!(tried(Selection { filter: of("other"), ids: Vec::new() }).await, []);
    for n in [7, 8] {
        bury(&store, job(n, plain()), Reason::Blocked, "no", at(2)).await;
    }
    assert_eq!(tried(Selection::default()).await, [None, Some(version)], "each once, and what is not known");
}

/// Letters of a replay that is pinned to a version are leased only by who has it, until it is pinned to another.
pub async fn a_pinned_replay_waits_for_its_version(store: Shared) {
    bury_some(&store, 2).await;
    start(&store, 1, at_once()).await;
    let pin = async |version: &str| {
        let replay = get(&store, 1).await;
        let pins = Pins::from([(pipeline(), DefinitionVersion::new(version))]);
        let next = NextReplay::of(replay.state, replay.why.clone(), &replay.progress).pinned(pins.clone());
        let by = redrive_core::actors::Actor::redrive();
        let set = SetReplay { id: replay.id, was: replay.version, next, excluded: None, by, now: at(101) };
        assert!(store.set_replay(set.clone()).await.expect("answered"));
        assert!(!store.set_replay(set).await.expect("answered"), "once");
        assert_eq!(get(&store, 1).await.pins, pins);
    };
    let lease = async |version: Option<&str>, now: i64| {
        let definition = version.map(DefinitionVersion::new);
        let asked = LeaseJobs { definition, ..lease_of(Lane::Replay(replay_id(1)), 1, at(now)) };
        lease_past_breakers(&store, asked).await.jobs.len()
    };
    pin("aa").await;
    advance(&store, 1, at(102)).await;
    assert_eq!((lease(Some("bb"), 103).await, lease(None, 104).await), (0, 0));
    assert_eq!(lease(Some("aa"), 105).await, 1);
    pin("bb").await;
    assert_eq!((lease(Some("aa"), 106).await, lease(Some("bb"), 107).await), (0, 1));
}
