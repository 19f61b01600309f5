//! What must hold of causes.

mod script;

use std::time::Duration;

use redrive_core::causes::{
    CauseChange, CauseId, CauseSort, CauseState, ID_DIGITS, Mute, SplitBy, Trend, Unchangeable,
};
use redrive_core::failures::Reason;
use redrive_core::replays::Advance;
use serde_json::json;

use self::script::{bury_by, by_ada, decided, detail, resolve_some, resolved, sorted, target, text, try_change};
pub(super) use self::script::{causes, change};
use super::replays;
use super::script::{Shared, ada, assert_sound, at, attach, brought, bury, dead, fatal, job, ledger, plain, settle};
use crate::contract::{
    BusiestCauses, CauseChanged, CauseView, DeadFilter, DiscardDead, FindCause, ListActivity, ListCauses,
};

/// Three letters of one cause on two hosts, and one of another.
async fn bury_four(store: &Shared) {
    attach(store, 1).await;
    for n in 1..=3 {
        let input = json!({"url": format!("https://host{}.example/{n}", n % 2)});
        let message = format!("task {}00{n} was lost", n + 4);
        bury(store, job(n, input), Reason::HandlerError, &message, at(n as i64)).await;
    }
    bury(store, job(4, plain()), Reason::RejectedInput, "the site key is wrong", at(4)).await;
}

/// Letters with one root cause are one cause, counted as they die.
pub async fn letters_are_grouped_as_they_die(store: Shared) {
    bury_four(&store).await;
    let listed = causes(&store, at(100)).await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    let most = &listed[0];
    assert_eq!((most.dead, most.total, most.reason), (3, 3, Reason::HandlerError));
    assert_eq!((most.first_seen, most.last_seen), (at(1), at(3)));
    assert_eq!((most.targets_count, most.targets[0].as_str()), (2, "host1.example"));
    assert_eq!(most.trend.0.iter().sum::<i64>(), 3);
    assert_eq!(most.state, CauseState::New);
    let letters = dead(&store, DeadFilter { cause: Some(most.id.clone()), ..DeadFilter::default() }).await;
    assert_eq!(letters.len(), 3);
    assert!(letters.iter().all(|letter| letter.cause.as_ref() == Some(&most.id)));
    let detail = detail(&store, &most.id).await;
    assert_eq!((detail.keys.len(), detail.samples.len()), (1, 3));
    assert!(detail.keys[0].parts.iter().any(|part| part.value.contains("was lost")), "{:?}", detail.keys);
    let short: CauseId = most.id.as_str()[..5].parse().expect("an id");
    assert_eq!(store.get_cause(short, at(100)).await.expect("found").cause.id, most.id);
    assert!(store.get_cause("0123456789".parse().expect("an id"), at(100)).await.is_err());
    assert_sound(&store).await;
}

/// What is discarded is no longer dead of its cause.
pub async fn discarding_is_counted(store: Shared) {
    bury_four(&store).await;
    let params = DiscardDead { ids: vec![job(1, plain()).id], by: ada(), why: "x".into(), now: at(9) };
    store.discard_dead(params).await.expect("discarded");
    let cause = &causes(&store, at(100)).await[0];
    assert_eq!((cause.dead, cause.total, cause.discarded), (2, 3, 1));
    assert_sound(&store).await;
}

/// Causes come in the order that is asked for, each with an address of its newest letter, if that has one.
pub async fn causes_are_listed_in_an_order(store: Shared) {
    bury_four(&store).await;
    bury(&store, job(5, json!({"url": ["no", "address"]})), Reason::Timeout, "it took too long", at(5)).await;
    bury(&store, job(6, json!({"n": 6})), Reason::Timeout, "it took too long", at(6)).await;
    bury(&store, job(7, json!({"url": 7})), Reason::HandlerError, "task 7007 was lost", at(7)).await;
    let reasons = async |sort| {
        let listed = sorted(&store, sort, at(100)).await;
        listed.into_iter().map(|cause| (cause.reason, cause.example)).collect::<Vec<_>>()
    };
    let lost = (Reason::HandlerError, Some("7".to_owned()));
    let (wrong, late) = ((Reason::RejectedInput, Some("https://example.com/".to_owned())), (Reason::Timeout, None));
    assert_eq!(reasons(CauseSort::Dead).await, [lost.clone(), late.clone(), wrong.clone()]);
    assert_eq!(reasons(CauseSort::Last).await, [lost.clone(), late.clone(), wrong.clone()]);
    assert_eq!(reasons(CauseSort::First).await, [late, wrong, lost]);
}

/// What is imported is recognised like what dies here, and is no death of now: it makes no trend, and no cause the busiest.
pub async fn imported_letters_have_causes(store: Shared, other: Shared) {
    bury_four(&store).await;
    let letters = dead(&store, DeadFilter::default()).await;
    other.import_dead(brought(letters, at(70))).await.expect("imported");
    let here = causes(&store, at(100)).await.into_iter().map(|cause| CauseView { trend: Trend::default(), ..cause });
    assert_eq!(here.collect::<Vec<_>>(), causes(&other, at(100)).await);
    let params = BusiestCauses { pipeline: None, since: at(0), limit: 9 };
    assert_eq!(store.busiest_causes(params.clone()).await.expect("listed").len(), 2);
    assert!(other.busiest_causes(params).await.expect("listed").is_empty());
    assert_sound(&other).await;
}

/// What people say about a cause is kept, with who and when.
pub async fn people_have_their_say(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    change(&store, &id, CauseChange::Assign(Some("bob".into()))).await;
    change(&store, &id, CauseChange::Note("looking at it".into())).await;
    change(&store, &id, CauseChange::Mute(Mute { until: Some(at(200)), per_hour: None })).await;
    let seen = detail(&store, &id).await;
    assert_eq!((seen.cause.owner.as_deref(), seen.cause.state), (Some("bob"), CauseState::Muted));
    let notes: Vec<_> = seen.notes.iter().map(|note| (note.by.name.as_str(), note.text.as_str(), note.at)).collect();
    assert_eq!(notes[..2], [("ada", "assigned to bob", at(50)), ("ada", "looking at it", at(50))]);
    let later = store.get_cause(id.clone(), at(300)).await.expect("there");
    assert_eq!(later.cause.state, CauseState::New, "a mute ends");
    let of_bob = ListCauses {
        states: vec![CauseState::Muted],
        owner: Some("bob".into()),
        with_empty: false,
        ..ListCauses::all(10, at(100))
    };
    assert_eq!(store.list_causes(of_bob.clone()).await.expect("listed").len(), 1);
    // The larger one is muted: the first that needs somebody is the other, however few are wanted.
    let needy = ListCauses { states: Vec::new(), owner: None, needy: true, limit: 1, ..of_bob };
    let named = |name: &str| vec![name.parse().expect("a name")];
    let own = ListCauses { pipelines: named("suite"), ..needy.clone() };
    let found = store.list_causes(own).await.expect("listed");
    assert!(found.len() == 1 && found[0].id != id, "{found:?}");
    let elsewhere = ListCauses { pipelines: named("elsewhere"), ..needy };
    assert!(store.list_causes(elsewhere).await.expect("listed").is_empty());
}

/// What people do to causes is noted with what they said; a change that was refused is not.
pub async fn what_people_do_to_a_cause_is_noted(store: Shared) {
    bury_four(&store).await;
    let listed = causes(&store, at(100)).await;
    let (id, other) = (listed[0].id.clone(), listed[1].id.clone());
    change(&store, &id, CauseChange::Assign(Some("bob".into()))).await;
    let (edit, _) = decided(&store, &id, &CauseChange::Reopen, ID_DIGITS).await.expect("possible");
    change(&store, &id, CauseChange::Resolve(Some("fixed".into()))).await;
    assert_eq!(store.change_cause(by_ada(edit)).await.expect("answered"), CauseChanged::Stale);
    change(&store, &other, CauseChange::MergeInto(id.clone())).await;
    let noted = store.list_activity(ListActivity { limit: 9, ..ListActivity::default() }).await.expect("listed").items;
    let told: Vec<_> =
        noted.iter().map(|done| (done.verb.as_str(), done.object.clone(), done.detail.clone())).collect();
    let of =
        |verb, id: &CauseId, note: String| (verb, format!("cause {id}"), json!({"pipelines": ["suite"], "note": note}));
    let expected = [
        of("merge", &other, format!("{other} merged into this one")),
        of("resolve", &id, "resolved: fixed".into()),
        of("assign", &id, "assigned to bob".into()),
    ];
    assert_eq!(told, expected);
}

/// A cause that was resolved and comes back is regressed.
pub async fn what_comes_back_is_regressed(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    change(&store, &id, CauseChange::Resolve(Some("fixed".into()))).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Resolved);
    bury(&store, job(9, plain()), Reason::HandlerError, "task 9009 was lost", at(60)).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Regressed);
    change(&store, &id, CauseChange::Resolve(None)).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Resolved);
    change(&store, &id, CauseChange::Reopen).await;
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::New);
}

/// Two causes that a person calls one stay one for what is still to come, until the person takes it back.
pub async fn a_merge_holds_for_the_future(store: Shared) {
    bury_four(&store).await;
    let listed = causes(&store, at(100)).await;
    let (most, other) = (&listed[0].id, &listed[1].id);
    change(&store, other, CauseChange::Note("before".into())).await;
    assert_eq!(&change(&store, other, CauseChange::MergeInto(most.clone())).await, most);
    bury(&store, job(9, plain()), Reason::RejectedInput, "the site key is wrong", at(60)).await;
    let merged = causes(&store, at(100)).await;
    assert_eq!((merged.len(), merged[0].dead), (1, 5));
    let seen = detail(&store, most).await;
    assert_eq!(seen.keys.len(), 2);
    assert!(seen.notes.iter().any(|note| note.text == "before"), "notes come along");
    assert_eq!(dead(&store, DeadFilter { cause: Some(most.clone()), ..DeadFilter::default() }).await.len(), 5);
    let itself = CauseChange::MergeInto(most.clone());
    assert_eq!(try_change(&store, most, &itself).await, Err(Unchangeable::SameCause));

    let key = seen.keys.iter().find(|key| key.sample.contains("site key")).expect("a key").key.clone();
    let split = change(&store, most, CauseChange::Split(SplitBy::Key(key))).await;
    bury(&store, job(10, plain()), Reason::RejectedInput, "the site key is wrong", at(62)).await;
    assert_eq!(detail(&store, &split).await.cause.dead, 3);
    assert_eq!(detail(&store, most).await.cause.dead, 3);
    assert_eq!(ledger(&store).await.dead, 6);
    assert_sound(&store).await;
}

/// Part of a cause that a person calls something else stays so for what is still to come.
pub async fn a_split_holds_for_the_future(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let split = change(&store, &id, target("host1.example")).await;
    assert_ne!(split, id);
    let on = |host: &str| json!({"url": format!("https://{host}/x")});
    bury(&store, job(9, on("host1.example")), Reason::HandlerError, "task 9009 was lost", at(60)).await;
    bury(&store, job(10, on("host0.example")), Reason::HandlerError, "task 9010 was lost", at(61)).await;
    let (part, rest) = (detail(&store, &split).await, detail(&store, &id).await);
    assert_eq!((part.cause.dead, part.cause.targets), (3, vec!["host1.example".to_owned()]));
    assert_eq!((rest.cause.dead, rest.cause.targets), (2, vec!["host0.example".to_owned()]));
    assert_eq!(part.cause.trend.0.iter().sum::<i64>() + rest.cause.trend.0.iter().sum::<i64>(), 5);
    assert_eq!((part.cause.first_seen, part.cause.last_seen), (at(1), at(60)));
    let by_text = change(&store, &id, text("9010")).await;
    assert_eq!(detail(&store, &by_text).await.cause.dead, 1);
    assert_sound(&store).await;
}

/// A part that was split off can be split again, and what is still to come finds its way through both.
pub async fn a_part_of_a_part_is_split_off(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let part = change(&store, &id, target("host1.example")).await;
    let deeper = change(&store, &part, text("7003")).await;
    let input = json!({"url": "https://host1.example/x"});
    bury(&store, job(9, input), Reason::HandlerError, "task 7003 was lost", at(60)).await;
    assert_eq!(detail(&store, &deeper).await.cause.dead, 2);
    let nothing = try_change(&store, &id, &target("nobody.example")).await;
    assert_eq!(nothing, Err(Unchangeable::NothingFits), "an empty part is none");
    assert_eq!(causes(&store, at(100)).await.len(), 4);
    assert_sound(&store).await;
}

/// A cause that became part of another is found by its old id, and is itself again when the merge is taken back.
pub async fn a_merge_taken_back(store: Shared) {
    bury_four(&store).await;
    let listed = causes(&store, at(100)).await;
    let (most, other) = (&listed[0].id, &listed[1].id);
    change(&store, other, CauseChange::Note("mine".into())).await;
    change(&store, most, CauseChange::Resolve(None)).await;
    change(&store, other, CauseChange::MergeInto(most.clone())).await;
    let found = detail(&store, other).await;
    assert_eq!((&found.cause.id, found.cause.state), (most, CauseState::New), "what is not over does not become so");
    let key = found.keys.iter().find(|key| key.sample.contains("site key")).expect("a key").key.clone();
    let split = change(&store, most, CauseChange::Split(SplitBy::Key(key))).await;
    assert_eq!(&split, other, "it has its old name");
    let notes = detail(&store, other).await.notes;
    assert!(notes.iter().any(|note| note.text == "mine"), "and its notes: {notes:?}");
}

/// A letter that died before its cause was resolved does not bring it back, however late it comes.
pub async fn an_old_letter_regresses_nothing(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let mut letters = dead(&store, DeadFilter { cause: Some(id.clone()), ..DeadFilter::default() }).await;
    change(&store, &id, CauseChange::Resolve(None)).await;
    let mut late = letters.remove(0);
    late.id = job(77, plain()).id;
    store.import_dead(brought(vec![late], at(70))).await.expect("imported");
    assert_eq!(detail(&store, &id).await.cause.state, CauseState::Resolved);
}

/// Asking which cause a failure would have writes nothing.
pub async fn what_is_recognised_is_not_written(store: Shared) {
    bury_four(&store).await;
    let cause = &causes(&store, at(100)).await[0];
    let key = detail(&store, &cause.id).await.keys[0].key.clone();
    let known = store.recognise(vec![key, "1-never-seen".to_owned()]).await.expect("answered");
    assert_eq!(known, [Some(cause.id.clone()), None]);
    assert_eq!(causes(&store, at(100)).await.len(), 2);
}

/// Splitting and merging back in turn leaves everything as it was: no key, no rule and no count is left behind.
pub async fn a_split_merged_back_leaves_nothing_behind(store: Shared) {
    attach(&store, 1).await;
    for n in 1..=16 {
        let input = json!({"url": format!("https://host{}.example/{n}", n % 2)});
        bury(&store, job(n, input), Reason::HandlerError, &format!("task {n} was lost"), at(n as i64)).await;
    }
    let before = causes(&store, at(100)).await;
    let id = before[0].id.clone();
    let mut parts = Vec::new();
    for _ in 0..15 {
        let part = change(&store, &id, target("host1.example")).await;
        assert_eq!((detail(&store, &part).await.cause.dead, detail(&store, &id).await.cause.dead), (8, 8));
        assert_eq!(change(&store, &part, CauseChange::MergeInto(id.clone())).await, id);
        parts.push(part);
        assert_eq!(store.cause_rules().await.expect("read").rules, [], "the rule goes away again");
        let seen = detail(&store, &id).await;
        assert_eq!((seen.keys.len(), seen.keys[0].total), (1, 16));
        assert_eq!(causes(&store, at(100)).await, before);
    }
    parts.dedup();
    assert_eq!(parts.len(), 1, "it is the same part each time");
    let facts = store.cause_facts(FindCause { id, like: None }).await.expect("there");
    assert_eq!(facts.keys.len(), 2, "the part is kept once, for splits to come: {facts:?}");
    assert_sound(&store).await;
}

/// A cause kills a job once: what fails of it again in a replay is counted apart, and moves with its letter.
pub async fn what_fails_again_is_counted_apart(store: Shared) {
    attach(&store, 1).await;
    for (n, host) in [(1, "a.example"), (2, "b.example")] {
        let input = json!({"url": format!("https://{host}/{n}")});
        bury(&store, job(n, input), Reason::RejectedInput, &format!("task {n} was lost"), at(n as i64)).await;
    }
    let mut seen = causes(&store, at(500)).await;
    assert_eq!((seen[0].dead, seen[0].total, seen[0].refailed, seen[0].trend.0.iter().sum::<i64>()), (2, 2, 0, 2));
    for n in 1..=2 {
        let now = at(100 * n as i64);
        replays::start(&store, n, replays::at_once()).await;
        while !matches!(replays::advance(&store, n, now).await, Advance::Wait(_) | Advance::Finish) {}
        for sent in replays::lease(&store, n, now).await {
            let message = format!("task {} was lost", sent.number);
            settle(&store, &sent, fatal(Reason::RejectedInput, &message), now).await;
        }
        while !matches!(replays::advance(&store, n, now).await, Advance::Wait(_)) {}
    }
    seen = causes(&store, at(500)).await;
    assert_eq!(seen.len(), 1, "it is the same cause");
    assert_eq!((seen[0].dead, seen[0].total, seen[0].refailed, seen[0].trend.0.iter().sum::<i64>()), (2, 2, 4, 2));
    let id = seen[0].id.clone();
    let part = change(&store, &id, target("b.example")).await;
    let (part, rest) = (detail(&store, &part).await.cause, detail(&store, &id).await.cause);
    assert_eq!((part.dead, part.refailed, rest.dead, rest.refailed), (1, 1, 1, 3), "the last failure of each is moved");
    change(&store, &part.id, CauseChange::MergeInto(id)).await;
    assert_eq!(causes(&store, at(500)).await, seen, "merged back, all is as it was");
    assert_sound(&store).await;
}

/// A settlement by older rules is filed, and brought to where it belongs later. So is one that names a part which was brought
/// back meanwhile.
pub async fn what_is_settled_by_older_rules_is_resolved_anew(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let older = store.cause_rules().await.expect("read");
    let part = change(&store, &id, target("host1.example")).await;
    let on = |n: u128| job(n, json!({"url": format!("https://host1.example/{n}")}));
    bury_by(&store, on(9), "task 9009 was lost", &older).await;
    assert_eq!(detail(&store, &part).await.cause.dead, 2);
    while resolve_some(&store, 1).await {}
    assert_eq!((detail(&store, &part).await.cause.dead, detail(&store, &id).await.cause.dead), (3, 1));

    let older = store.cause_rules().await.expect("read");
    change(&store, &part, CauseChange::MergeInto(id.clone())).await;
    bury_by(&store, on(10), "task 9010 was lost", &older).await;
    while resolve_some(&store, 1).await {}
    let seen = detail(&store, &id).await;
    assert_eq!((seen.cause.dead, seen.keys.len(), seen.keys[0].dead), (5, 1, 5));
    assert_sound(&store).await;
}

/// Of two changes that were decided at once one is written, and the other knows.
pub async fn a_change_that_was_overtaken_writes_nothing(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let assign = |who: &str| CauseChange::Assign(Some(who.to_owned()));
    let (first, _) = decided(&store, &id, &assign("bob"), ID_DIGITS).await.expect("decided");
    let (second, _) = decided(&store, &id, &assign("eve"), ID_DIGITS).await.expect("decided");
    let (split, _) = decided(&store, &id, &target("host1.example"), ID_DIGITS).await.expect("decided");
    assert_eq!(store.change_cause(by_ada(first)).await.expect("answered"), CauseChanged::Applied);
    for late in [second, split] {
        assert_eq!(store.change_cause(by_ada(late)).await.expect("answered"), CauseChanged::Stale);
    }
    let seen = detail(&store, &id).await;
    assert_eq!((seen.cause.owner.as_deref(), seen.notes.len()), (Some("bob"), 1));
    assert_eq!(store.cause_rules().await.expect("read").rules, []);
}

/// Of two who resolve the same letters one does, and rules that changed meanwhile are noticed.
pub async fn letters_are_resolved_by_the_rules_there_are(store: Shared) {
    bury_four(&store).await;
    let id = causes(&store, at(100)).await[0].id.clone();
    let (edit, part) = decided(&store, &id, &target("host1.example"), ID_DIGITS).await.expect("decided");
    let before = store.cause_rules().await.expect("read");
    store.change_cause(by_ada(edit)).await.expect("answered");
    let found = store.unresolved_letters(9).await.expect("listed").expect("letters");
    assert!(!store.resolve_letters(resolved(found.clone(), &before)).await.expect("answered"), "by older rules");
    let rules = store.cause_rules().await.expect("read");
    assert!(store.resolve_letters(resolved(found.clone(), &rules)).await.expect("answered"));
    assert!(!store.resolve_letters(resolved(found, &rules)).await.expect("answered"), "twice");
    while resolve_some(&store, 9).await {}
    assert_eq!(detail(&store, &part).await.cause.dead, 2);
    assert_sound(&store).await;
}

/// A list of causes in some states has as many as asked for, whatever stands before them.
pub async fn a_list_of_states_goes_on_until_it_is_full(store: Shared) {
    attach(&store, 1).await;
    for n in 0..12_u128 {
        let letter = char::from(b'a' + u8::try_from(n).expect("few"));
        let message = format!("the {} is wrong", letter.to_string().repeat(5));
        bury(&store, job(n + 1, plain()), Reason::HandlerError, &message, at(n as i64)).await;
    }
    let all = causes(&store, at(100)).await;
    assert_eq!(all.len(), 12);
    for cause in &all[..8] {
        change(&store, &cause.id, CauseChange::Resolve(None)).await;
    }
    change(&store, &all[8].id, CauseChange::Mute(Mute::default())).await;
    let listed = async |states: &[CauseState], limit| {
        let params = ListCauses { states: states.to_vec(), with_empty: false, ..ListCauses::all(limit, at(100)) };
        let found = store.list_causes(params).await.expect("listed");
        assert!(found.iter().all(|cause| states.contains(&cause.state) && cause.targets == ["example.com"]));
        found.len()
    };
    assert_eq!(listed(&[CauseState::New], 2).await, 2);
    assert_eq!(listed(&[CauseState::New], 9).await, 3);
    assert_eq!(listed(&[CauseState::Resolved], 9).await, 8);
    assert_eq!(listed(&[CauseState::Muted, CauseState::New], 9).await, 4);
    assert_eq!(listed(&[CauseState::Regressed], 9).await, 0);
    bury(&store, job(90, plain()), Reason::HandlerError, "the lllll is wrong", at(99)).await;
    assert_eq!(listed(&[CauseState::Regressed], 9).await, 1);
}

/// A cause far above its usual hour escalates.
pub async fn a_sudden_rise_escalates(store: Shared) {
    attach(&store, 1).await;
    let hour = 3_600;
    for n in 0..30_u128 {
        let time = if n < 5 { at(n as i64 * hour) } else { at(30 * hour) };
        bury(&store, job(n + 1, plain()), Reason::HandlerError, &format!("task {n} was lost"), time).await;
    }
    let now = at(30 * hour) + Duration::from_secs(60);
    assert_eq!(causes(&store, now).await[0].state, CauseState::Escalating);
}
