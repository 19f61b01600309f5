use super::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

fn id(text: &str) -> CauseId {
    text.parse().expect("an id")
}

fn key(key: &str, fits: bool) -> KeyFacts {
    KeyFacts { key: key.to_owned(), origin: None, retired: false, fits }
}

fn cause(name: &str, keys: Vec<KeyFacts>) -> CauseFacts {
    CauseFacts {
        id: id(name),
        version: 3,
        pipeline: "p".parse().expect("a name"),
        said: Said::default(),
        last_seen: at(10),
        dead: 2,
        keys,
    }
}

fn decide(what: &CauseChange, cause: &CauseFacts, into: Option<&CauseFacts>, rules: &CauseRules) -> Decided {
    change(what, Circumstances { cause, into, rules, digits: 8, now: at(20) })
}

type Decided = Result<(CauseEdit, CauseId), Unchangeable>;

fn target() -> Likeness {
    Likeness::Target("a.example".into())
}

fn split_off() -> CauseChange {
    CauseChange::Split(SplitBy::Like(target()))
}

fn ruled(key: &str) -> CauseRule {
    CauseRule { key: key.to_owned(), like: target(), into: part_key(key, &target()) }
}

#[test]
fn what_is_said_is_guarded_by_the_version() {
    let aa = cause("aa", vec![key("1-aa", false)]);
    let (edit, about) = decide(&CauseChange::Resolve(None), &aa, None, &CauseRules::default()).expect("decided");
    assert_eq!((edit.was, edit.rules, about), (vec![(id("aa"), 3)], None, id("aa")));
    let said = Said { resolved_at: Some(at(20)), ..Said::default() };
    assert_eq!(edit.steps, [CauseStep::Say(id("aa"), said), CauseStep::Note(id("aa"), "resolved".into())]);
}

#[test]
fn a_cause_is_muted_until_a_time_that_is_to_come() {
    let aa = cause("aa", vec![key("1-aa", false)]);
    let mute = |until| CauseChange::Mute(Mute { until: Some(until), per_hour: None });
    let decided = |until| decide(&mute(until), &aa, None, &CauseRules::default()).map(|(_, about)| about);
    assert_eq!([decided(at(19)), decided(at(20))], [Err(Unchangeable::Over(at(19))), Err(Unchangeable::Over(at(20)))]);
    assert_eq!(decided(at(21)), Ok(id("aa")));
}

#[test]
fn what_died_in_the_future_does_not_bring_a_resolved_cause_back() {
    let ahead = CauseFacts { last_seen: at(99), ..cause("aa", vec![key("1-aa", false)]) };
    let (edit, _) = decide(&CauseChange::Resolve(None), &ahead, None, &CauseRules::default()).expect("decided");
    assert!(matches!(&edit.steps[0], CauseStep::Say(_, said) if said.resolved_at == Some(at(99))));
}

#[test]
fn a_split_touches_only_keys_with_fitting_letters() {
    let aa = cause("aa", vec![key("1-aa", true), key("1-bb", false), key("1-cc", true)]);
    let rules = CauseRules { version: 5, rules: Vec::new() };
    let (edit, part) = decide(&split_off(), &aa, None, &rules).expect("decided");
    assert_eq!(edit.rules, Some(5));
    let made: Vec<_> = edit.steps.iter().filter(|step| matches!(step, CauseStep::Rule(..))).cloned().collect();
    assert_eq!(made, [CauseStep::Rule(ruled("1-aa"), part.clone()), CauseStep::Rule(ruled("1-cc"), part)]);
}

#[test]
fn what_cannot_be_split_says_why() {
    let rules = CauseRules { version: 1, rules: vec![ruled("1-aa")] };
    let aa = cause("aa", vec![key("1-aa", false)]);
    assert_eq!(decide(&split_off(), &aa, None, &rules), Err(Unchangeable::SplitAlready));
    assert_eq!(decide(&split_off(), &aa, None, &CauseRules::default()), Err(Unchangeable::NothingFits));
    let by_key = |key: &str| CauseChange::Split(SplitBy::Key(key.to_owned()));
    assert_eq!(decide(&by_key("1-zz"), &aa, None, &rules), Err(Unchangeable::NoSuchKey));
    assert_eq!(decide(&by_key("1-aa"), &aa, None, &rules), Err(Unchangeable::OneKeyOnly));
}

#[test]
fn merging_back_undoes_the_split_and_splitting_again_finds_the_part() {
    let rules = CauseRules { version: 1, rules: vec![ruled("1-aa")] };
    let part = part_key("1-aa", &target());
    let (whole, off) = (cause("aa", vec![key("1-aa", false)]), cause("bb", vec![key(&part, true)]));
    for (from, into) in [(&off, &whole), (&whole, &off)] {
        let (edit, about) =
            decide(&CauseChange::MergeInto(into.id.clone()), from, Some(into), &rules).expect("decided");
        assert_eq!((about, edit.rules), (into.id.clone(), Some(1)));
        assert!(edit.steps.contains(&CauseStep::Unrule(ruled("1-aa"))), "{edit:?}");
    }
    let retired = KeyFacts { key: part, origin: Some(id("bb")), retired: true, fits: false };
    let merged = cause("aa", vec![key("1-aa", true), retired]);
    let (edit, again) = decide(&split_off(), &merged, None, &CauseRules::default()).expect("decided");
    assert_eq!((again, &edit.steps[0]), (id("bb"), &CauseStep::Join(id("bb"), None)));
}

#[test]
fn a_part_with_parts_elsewhere_keeps_its_rule() {
    let part = part_key("1-aa", &target());
    let deeper = CauseRule { key: part.clone(), like: Likeness::Text("x".into()), into: "deeper".into() };
    let rules = CauseRules { version: 1, rules: vec![ruled("1-aa"), deeper.clone()] };
    let (whole, off) = (cause("aa", vec![key("1-aa", false)]), cause("bb", vec![key(&part, true)]));
    let merge = CauseChange::MergeInto(whole.id.clone());
    let (edit, _) = decide(&merge, &off, Some(&whole), &rules).expect("decided");
    assert_eq!(edit.rules, None, "{edit:?}");
    let both = cause("bb", vec![key(&part, true), key("deeper", true)]);
    let (edit, _) = decide(&merge, &both, Some(&whole), &rules).expect("decided");
    let undone: Vec<_> = edit.steps.iter().filter(|step| matches!(step, CauseStep::Unrule(_))).cloned().collect();
    assert_eq!(undone, [CauseStep::Unrule(deeper), CauseStep::Unrule(ruled("1-aa"))]);
}

#[test]
fn what_is_not_over_does_not_become_so_by_a_merge() {
    let said = |resolved_at| Said { resolved_at, ..Said::default() };
    let with = |resolved_at| CauseFacts { said: said(resolved_at), ..cause("aa", Vec::new()) };
    let (open, over, back) = (with(None), with(Some(at(15))), with(Some(at(5))));
    assert_eq!(resolved_together(&open, &over), None);
    assert_eq!(resolved_together(&over, &open), None);
    assert_eq!(resolved_together(&over, &with(Some(at(11)))), Some(at(15)));
    assert_eq!(resolved_together(&back, &over), Some(at(5)), "it came back");
    assert_eq!(resolved_together(&over, &back), Some(at(5)));
}

#[test]
fn causes_of_different_pipelines_stay_apart() {
    let aa = cause("aa", vec![key("1-aa", false)]);
    let other = CauseFacts { pipeline: "q".parse().expect("a name"), ..cause("bb", Vec::new()) };
    let rules = CauseRules::default();
    let merge = |into: &CauseFacts| decide(&CauseChange::MergeInto(into.id.clone()), &aa, Some(into), &rules);
    assert_eq!(merge(&other), Err(Unchangeable::OtherPipeline));
    assert_eq!(merge(&aa), Err(Unchangeable::SameCause));
}

#[test]
fn a_replay_resolves_only_what_it_left_empty() {
    let some = cause("aa", Vec::new());
    assert_eq!(recovered(&some, "r", at(20)), None, "letters are dead");
    let none = CauseFacts { dead: 0, ..some };
    assert!(recovered(&none, "r", at(20)).is_some());
    let over = CauseFacts { said: Said { resolved_at: Some(at(12)), ..Said::default() }, ..none };
    assert_eq!(recovered(&over, "r", at(20)), None, "it is over already");
}

/// Parts of parts of parts are undone from their ends, each looked at a bounded number of times.
#[test]
fn a_long_chain_of_parts_is_undone_from_its_end() {
    const LONG: usize = 20_000;
    let name = |n: usize| format!("k{n:05}");
    let rule = |n: usize| CauseRule { key: name(n), like: target(), into: name(n + 1) };
    let rules = CauseRules { version: 1, rules: (0..LONG).map(rule).collect() };
    let keys: Vec<String> = (0..=LONG).map(name).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let undone = super::undone(&keys, &rules);
    assert_eq!((undone.len(), undone[0].into.as_str(), undone[LONG - 1].key.as_str()), (LONG, keys[LONG], "k00000"));
    assert_eq!(super::undone(&keys[..LONG], &rules), [], "the way to what is elsewhere leads through all of them");
}

#[test]
fn what_is_taken_back_is_as_it_was() {
    let now = Timestamp::from_millis(1_000);
    let mute = |until: i64| Mute { until: Some(Timestamp::from_millis(until)), per_hour: Some(7) };
    let was = |mute| Said { owner: Some("ada".into()), resolved_at: None, mute };
    let back = |change: &CauseChange, mute| taken_back(change, &was(mute), now);
    assert_eq!(back(&CauseChange::Assign(None), None), [CauseChange::Assign(Some("ada".into()))]);
    assert_eq!(back(&CauseChange::Unmute, Some(mute(2_000))), [CauseChange::Mute(mute(2_000))]);
    assert_eq!(back(&CauseChange::Unmute, Some(mute(900))), [], "that mute is over");
    let resolved = CauseChange::Resolve(None);
    assert_eq!(back(&resolved, Some(mute(2_000))), [CauseChange::Reopen, CauseChange::Mute(mute(2_000))]);
    assert_eq!(back(&resolved, None), [CauseChange::Reopen]);
    assert_eq!(back(&CauseChange::Mute(mute(2_000)), None), [CauseChange::Unmute]);
    assert_eq!(back(&CauseChange::Note("x".into()), None), []);
}
