//! Conditions over recorded series: what fires, when, and what does not.

use std::time::Duration;

use super::*;
use crate::alerts::facts::{BreakerFacts, CauseFacts, Expiring, FieldFacts, PipelineFacts, ReplayFacts, UntakenReplay};
use crate::alerts::{AlertPage, Share, due_notice};
use crate::causes::CauseState;
use crate::ids::ReplayId;

/// The beginning of an hour.
const START: i64 = 472_222 * 3_600;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_millis((START + minutes * 60) * 1_000)
}

fn name() -> PipelineName {
    "shop".parse().expect("a name")
}

/// What is counted of a pipeline, minute by minute, and what is judged of it.
#[derive(Default)]
struct Recorded {
    minutes: Vec<(i64, Share)>,
    alerts: Alerts,
    rules: RuleBook,
    /// When what happened to which condition.
    told: Vec<(i64, Condition, &'static str)>,
}

impl Recorded {
    fn facts(&self, now: i64) -> Facts {
        let mut hours = BTreeMap::<i64, Share>::new();
        for (minute, share) in &self.minutes {
            let hour = hours.entry(minute.div_euclid(60)).or_default();
            *hour = *hour + *share;
        }
        let recent = self.minutes.iter().filter(|(minute, _)| *minute > now - 360);
        let pipeline = PipelineFacts {
            minutes: recent.map(|(minute, share)| (at(*minute), *share)).collect(),
            hours: hours.into_iter().map(|(hour, share)| (at(hour * 60), share)).collect(),
            ended_at: self.minutes.iter().rev().find(|(_, share)| share.whole > 0).map(|(minute, _)| at(*minute)),
            ..PipelineFacts::default()
        };
        Facts { pipelines: [(name(), pipeline)].into(), ..Facts::default() }
    }

    fn judge(&mut self, facts: &Facts, now: i64) {
        for alert in judge(&self.rules, facts, &self.alerts, at(now)) {
            let before =
                self.alerts.get(&alert.key).filter(|alert| alert.is_firing()).map_or(0, |alert| alert.tellings);
            let what = match (alert.is_firing(), alert.tellings > before) {
                (true, true) if before == 0 => Some("fired"),
                (true, true) => Some("grown"),
                (true, false) => None,
                (false, _) => Some("over"),
            };
            self.told.extend(what.map(|what| (now, alert.condition, what)));
            self.alerts.insert(alert.key.clone(), alert);
        }
    }

    /// So many minutes in each of which some of some jobs die, judged after each.
    fn go(&mut self, minutes: i64, died: impl Fn(i64) -> u64, ended: u64) {
        let first = self.minutes.last().map_or(0, |(minute, _)| minute + 1);
        for minute in first..first + minutes {
            self.minutes.push((minute, Share::new(died(minute), ended)));
            let facts = self.facts(minute);
            self.judge(&facts, minute);
        }
    }

    /// When each thing was told of a condition.
    fn of(&self, condition: Condition) -> Vec<(i64, &'static str)> {
        self.told.iter().filter(|(_, of, _)| *of == condition).map(|(minute, _, what)| (*minute, *what)).collect()
    }
}

/// One job in a thousand dies; then fifteen in a hundred do, for an hour; then it is as before.
#[test]
fn a_jump_from_a_thousandth_to_fifteen_per_cent_fires_within_one_window_and_is_over_when_it_is() {
    let mut recorded = Recorded::default();
    recorded.go(600, |minute| u64::from(minute % 10 == 0), 100);
    assert_eq!(recorded.told, [], "one in a thousand is no news");
    recorded.go(60, |_| 15, 100);
    recorded.go(60, |minute| u64::from(minute % 10 == 0), 100);
    for condition in [Condition::Rate, Condition::Jump] {
        let told = recorded.of(condition);
        assert_eq!(told.len(), 2 + told.iter().filter(|(_, what)| *what == "grown").count(), "{told:?}");
        let ((fired, first), (over, last)) = (told[0], told[told.len() - 1]);
        assert_eq!((first, last), ("fired", "over"), "{told:?}");
        assert!((600..=615).contains(&fired), "{condition} fired after {} minutes", fired - 600);
        assert!((660..=676).contains(&over), "{condition} was over {} minutes after it was", over - 660);
    }
}

#[test]
fn three_stray_time_outs_do_not_fire() {
    for ended in [5, 100] {
        let mut recorded = Recorded::default();
        recorded.go(600, |minute| u64::from([200, 203, 207].contains(&minute)), ended);
        assert_eq!(recorded.told, [], "of {ended} jobs a minute");
    }
}

/// With a window of a minute, judged at any second of the next one.
#[test]
fn a_window_of_a_minute_sees_the_last_full_minute() {
    for second in 0..60 {
        let mut recorded = Recorded { minutes: vec![(0, Share::new(50, 100))], ..Recorded::default() };
        (recorded.rules.all.window, recorded.rules.all.long_window) = (Duration::from_secs(60), None);
        let alerts = judge(&recorded.rules, &recorded.facts(1), &Alerts::new(), at(1) + Duration::from_secs(second));
        assert_eq!(alerts.len(), 1, "at second {second}");
        let later = judge(&recorded.rules, &recorded.facts(2), &Alerts::new(), at(2) + Duration::from_secs(second));
        assert_eq!(later, [], "it is in the window no more");
    }
}

#[test]
fn a_rate_fires_above_its_threshold_and_not_at_it() {
    for (rate, died, ended, fires) in
        [(0.005, 5, 1_000, false), (0.005, 6, 1_000, true), (0.005, 4, 20, false), (0.7 / 100.0, 7, 1_000, false)]
    {
        let mut recorded = Recorded::default();
        (recorded.rules.all.rate, recorded.rules.all.long_window) = (Some(rate), None);
        recorded.go(1, |_| died, ended);
        assert_eq!(!recorded.told.is_empty(), fires, "{died} of {ended} above {rate}");
    }
}

/// 300 jobs a day, of which one in a hundred dies, are too few for any quarter of an hour.
#[test]
fn a_slow_loss_fires_by_the_long_window_once_and_is_over_a_day_after_it() {
    let mut recorded = Recorded::default();
    for job in 0..1_500 {
        let died = matches!(job, 99 | 400..900) && job % 100 == 99;
        recorded.minutes.push((job * 5, Share::new(died.into(), 1)));
        let facts = recorded.facts(job * 5);
        recorded.judge(&facts, job * 5);
    }
    let told = recorded.of(Condition::Rate);
    let [(fired, "fired"), (over, "over")] = told[..] else { panic!("{told:?}") };
    assert_eq!(fired / 5, 699, "with the third that died within a day");
    assert!((900..900 + 300).contains(&(over / 5)), "{over}");
}

/// What the window saw and told is over with it, and the long window does not tell it again.
#[test]
fn the_long_window_does_not_tell_again_what_is_over() {
    let mut recorded = Recorded::default();
    recorded.go(20, |_| 5, 10);
    recorded.go(600, |_| 0, 10);
    let told = recorded.of(Condition::Rate);
    assert!(matches!(told[..], [(0, "fired"), (20..=36, "over")]), "{told:?}");
    let fires = |long_window| {
        let mut recorded = Recorded::default();
        recorded.rules.all.long_window = long_window;
        recorded.go(1, |_| 3, 300);
        recorded.told
    };
    assert_eq!(fires(Some(Duration::from_secs(86_400))), [(0, Condition::Rate, "fired")], "3 of 300");
    assert_eq!(fires(None), [], "switched off");
}

#[test]
fn five_of_many_do_not_fire_and_five_of_few_do() {
    let mut many = Recorded::default();
    many.go(15, |minute| u64::from(minute % 3 == 0), 100);
    assert_eq!(many.told, [], "5 of 1,500 are 0.33 %");
    let mut few = Recorded::default();
    few.go(15, |minute| u64::from(minute % 3 == 0), 4);
    assert_eq!(few.of(Condition::Rate).first().map(|(_, what)| *what), Some("fired"), "5 of 60 are 8 %");
}

/// While no job ends nobody knows whether it is better: a run that ended badly is not over because it ended.
#[test]
fn silence_is_no_sign_that_it_is_over() {
    let mut recorded = Recorded::default();
    recorded.go(20, |_| 5, 10);
    let key = AlertKey::new(Condition::Rate, Some(&name()), None);
    let summary = |recorded: &Recorded| recorded.alerts[&key].finding.summary.clone();
    for said in ["22:19 UTC", "2023-11-14 22:19 UTC"] {
        recorded.go(60, |_| 0, 0);
        assert_eq!(recorded.of(Condition::Rate), [(0, "fired")]);
        let said = format!("); nothing has finished since {said}");
        assert!(summary(&recorded).ends_with(&said), "{}", summary(&recorded));
    }
    recorded.go(1, |_| 1, 2);
    assert!(!summary(&recorded).contains("nothing has finished"), "{}", summary(&recorded));
    recorded.go(20, |_| 0, 10);
    assert_eq!(recorded.of(Condition::Rate).last().map(|(_, what)| *what), Some("over"));
}

/// What no file defines is judged by whoever judges, by the rules of all; what another file has is left to that.
#[test]
fn a_pipeline_that_no_file_has_is_judged_by_every_file() {
    let fires = |undefined: bool| {
        let mut recorded = Recorded { minutes: vec![(0, Share::new(50, 100))], ..Recorded::default() };
        recorded.rules.judged = Some(BTreeSet::new());
        let mut facts = recorded.facts(0);
        facts.undefined.extend(undefined.then(name));
        let alerts = judge(&recorded.rules, &facts, &Alerts::new(), at(0));
        alerts.iter().map(|alert| alert.condition).collect::<Vec<_>>()
    };
    assert_eq!((fires(true), fires(false)), (vec![Condition::Rate], vec![]));
}

/// Ten jobs an hour: each night on which half of them die is told.
#[test]
fn a_second_incident_of_a_small_pipeline_is_told_too() {
    let mut recorded = Recorded::default();
    for died in [5, 0, 0, 5] {
        recorded.go(1, |_| died, 10);
        recorded.go(59, |_| 0, 0);
    }
    assert_eq!(recorded.of(Condition::Rate), [(0, "fired"), (60, "over"), (180, "fired")]);
}

#[test]
fn what_has_doubled_is_told_again_once() {
    let mut recorded = Recorded::default();
    recorded.go(30, |_| 10, 200);
    recorded.go(90, |_| 40, 200);
    let told = recorded.of(Condition::Rate);
    let grown: Vec<_> = told.iter().filter(|(_, what)| *what == "grown").collect();
    assert_eq!((told[0].1, grown.len()), ("fired", 1), "5 % became 20 %, by way of 10 %: {told:?}");
}

/// A jump that goes on is not usual because it goes on.
#[test]
fn while_it_fires_it_is_compared_with_what_was_usual_before() {
    let mut recorded = Recorded::default();
    recorded.rules.all.rate = None;
    recorded.go(600, |_| 2, 100);
    recorded.go(2_000, |_| 30, 100);
    let told = recorded.of(Condition::Jump);
    assert!(told.iter().all(|(_, what)| *what != "over"), "{told:?}");
    recorded.go(40, |_| 2, 100);
    assert_eq!(recorded.of(Condition::Jump).last().map(|(_, what)| *what), Some("over"));
}

#[test]
fn a_pipeline_has_thresholds_of_its_own_or_is_not_watched() {
    let mut recorded = Recorded::default();
    let own = crate::alerts::Rules { rate: Some(0.5), jump: None, ..Default::default() };
    recorded.rules.pipelines.insert(name(), own);
    recorded.go(60, |_| 30, 100);
    assert_eq!(recorded.told, []);
    let other = crate::alerts::Rules { rate: Some(0.1), jump: None, ..Default::default() };
    recorded.rules.pipelines.insert(name(), other);
    recorded.go(1, |_| 30, 100);
    assert_eq!(recorded.told, [(60, Condition::Rate, "fired")]);
    let off = crate::alerts::Rules { rate: None, jump: None, ..Default::default() };
    recorded.rules.pipelines.insert(name(), off);
    recorded.go(1, |_| 30, 100);
    assert_eq!(recorded.told.last(), Some(&(61, Condition::Rate, "over")));
}

fn cause(state: CauseState, letters: u64, died: u64) -> CauseFacts {
    let title = "no such <b>field</b>\n\u{1b}[31m<!channel>".to_owned();
    CauseFacts { id: "3f9a1c2e".parse().expect("an id"), pipeline: name(), state, title, letters, died }
}

fn told_of(steps: Vec<(i64, Facts)>) -> Vec<(i64, Condition, &'static str)> {
    let mut recorded = Recorded::default();
    for (now, facts) in steps {
        recorded.judge(&facts, now);
    }
    recorded.told
}

#[test]
fn a_cause_is_told_if_it_is_news_and_many_of_many() {
    use CauseState::{Escalating, Muted, New, Ongoing, Regressed, Resolved};
    let facts = |cause| Facts { causes: vec![cause], ..Facts::default() };
    for state in [New, Regressed, Escalating] {
        let told = told_of(vec![(0, facts(cause(state, 10, 20))), (1, facts(cause(Ongoing, 12, 20)))]);
        assert_eq!(told, [(0, Condition::Cause, "fired")], "{state}");
    }
    for quiet in [cause(Ongoing, 99, 99), cause(Muted, 99, 99), cause(New, 9, 9), cause(New, 10, 101)] {
        assert_eq!(told_of(vec![(0, facts(quiet.clone()))]), [], "{quiet:?}");
    }
    for end in [facts(cause(Resolved, 10, 10)), facts(cause(Muted, 10, 10)), Facts::default()] {
        let told = told_of(vec![(0, facts(cause(New, 10, 10))), (1, facts(cause(New, 20, 20))), (2, end)]);
        let expected = [(0, "fired"), (1, "grown"), (2, "over")].map(|(at, what)| (at, Condition::Cause, what));
        assert_eq!(told, expected);
    }
}

#[test]
fn text_of_strangers_is_one_harmless_line() {
    let facts = Facts { causes: vec![cause(CauseState::New, 10, 10)], ..Facts::default() };
    let alerts = judge(&RuleBook::default(), &facts, &Alerts::new(), at(0));
    let text = due_notice(&alerts[0], None).expect("due").text(None);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.contains("look: redrive cause show 3f9a1c2e"), "{text}");
}

fn held(minutes: i64, held: u64, now: i64) -> Facts {
    let (target, why) = ("far.example".to_owned(), Some("blocked 403: no".to_owned()));
    let breaker = BreakerFacts { pipeline: name(), target, since: at(now - minutes), held, why };
    Facts { breakers: vec![breaker], ..Facts::default() }
}

#[test]
fn a_target_that_stays_away_is_told_and_told_again_when_it_took_twice_as_long() {
    let minutes = [5, 14, 15, 20, 29, 30, 59, 60];
    let steps = minutes.map(|minute| (minute, held(minute, 7, minute))).into_iter().chain([(61, Facts::default())]);
    let told = told_of(steps.collect());
    let expected = [(15, "fired"), (30, "grown"), (60, "grown"), (61, "over")];
    assert_eq!(told, expected.map(|(at, what)| (at, Condition::Breaker, what)));
    assert_eq!(told_of(vec![(99, held(99, 0, 99))]), [], "nobody waits for it");
}

/// So many targets that have been failing for so many minutes.
fn many(targets: usize, minutes: i64, now: i64) -> Facts {
    let breaker = |n: usize| BreakerFacts {
        pipeline: name(),
        target: format!("shop-{n:02}.example"),
        since: at(now - minutes),
        held: 10 - (n as u64).min(9),
        why: Some("blocked 403".to_owned()),
    };
    Facts { breakers: (0..targets).map(breaker).collect(), ..Facts::default() }
}

#[test]
fn fifty_targets_that_stay_away_are_one_alert_that_names_the_first() {
    let fired = judge(&RuleBook::default(), &many(50, 20, 20), &Alerts::new(), at(20));
    assert_eq!(fired.len(), 1);
    assert_eq!(
        fired[0].finding.summary,
        "shop: 50 targets have been failing for up to 20m, 95 tasks wait for them (alerts after 15m): shop-00.example, \
         shop-01.example, shop-02.example and 47 more (blocked 403)"
    );
    assert_eq!(fired[0].finding.numbers["targets"], 50);
    let steps = [(15, 1), (16, 1), (17, 2), (18, 3), (19, 4), (20, 50), (21, 50), (22, 49)];
    let mut told = told_of(steps.map(|(now, targets)| (now, many(targets, now, now))).to_vec());
    told.extend(told_of(vec![(15, many(2, 15, 15)), (16, Facts::default())]));
    let expected = [(15, "fired"), (17, "grown"), (19, "grown"), (20, "grown"), (15, "fired"), (16, "over")];
    assert_eq!(told, expected.map(|(at, what)| (at, Condition::Breaker, what)), "when twice as many fail");
}

/// A target that fails after all that were told of work again is told by itself.
#[test]
fn other_targets_than_those_that_were_told_are_another_alert() {
    let later = |now: i64| Facts { breakers: many(2, now - 60, now).breakers, ..Facts::default() };
    let told = told_of(vec![(20, many(1, 20, 20)), (76, later(76)), (77, later(77)), (78, later(78))]);
    let expected = [(20, "fired"), (76, "over"), (77, "fired")];
    assert_eq!(told, expected.map(|(at, what)| (at, Condition::Breaker, what)));
}

#[test]
fn a_replay_that_no_worker_takes_fires_after_five_minutes() {
    let replay = UntakenReplay {
        id: ReplayId::new(at(0), 1),
        name: "again".to_owned(),
        pipelines: [name()].into(),
        since: at(0),
        left: 12,
    };
    let mut recorded = Recorded::default();
    for minute in 0..10 {
        recorded.judge(&Facts { untaken: vec![replay.clone()], ..Facts::default() }, minute);
    }
    recorded.judge(&Facts { untaken: vec![UntakenReplay { since: at(9), ..replay.clone() }], ..Facts::default() }, 10);
    assert_eq!(recorded.of(Condition::Stalled), [(5, "fired"), (10, "over")]);
    recorded.judge(&Facts { untaken: vec![replay.clone()], ..Facts::default() }, 20);
    let fired = recorded.alerts.values().find(|alert| alert.is_firing()).expect("it fires");
    assert_eq!(fired.page(), AlertPage::Replay(replay.id));
    assert!(fired.finding.summary.contains("12 letters have waited for 20m (alerts after 5m)"), "{fired:?}");
    recorded.judge(&Facts::default(), 21);
    assert_eq!(recorded.of(Condition::Stalled)[2..], [(20, "fired"), (21, "over")]);
    recorded.rules.all.stalled = None;
    recorded.judge(&Facts { untaken: vec![replay], ..Facts::default() }, 30);
    assert_eq!(recorded.of(Condition::Stalled).len(), 4, "switched off");
}

#[test]
fn a_replay_that_paused_itself_is_told_until_somebody_goes_on() {
    let replay = ReplayFacts {
        id: ReplayId::new(at(0), 1),
        name: "fix".into(),
        why: "5 of 5 letters failed again".into(),
        failed: 5,
    };
    let facts = Facts { replays: vec![replay], ..Facts::default() };
    let told = told_of(vec![(0, facts.clone()), (1, facts), (2, Facts::default())]);
    assert_eq!(told, [(0, Condition::Replay, "fired"), (2, Condition::Replay, "over")]);
}

fn queue(due_since: Option<i64>, ended_at: Option<i64>, deadline_secs: u64) -> Facts {
    let pipeline = PipelineFacts {
        due_since: due_since.map(at),
        ended_at: ended_at.map(at),
        queued: 3,
        deadline: Duration::from_secs(deadline_secs),
        ..PipelineFacts::default()
    };
    Facts { pipelines: [(name(), pipeline)].into(), ..Facts::default() }
}

#[test]
fn a_queue_that_nobody_works_on_is_told() {
    let fires = |facts: Facts| told_of(vec![(100, facts)]) == [(100, Condition::Stalled, "fired")];
    assert!(fires(queue(Some(70), None, 300)), "due for half an hour");
    assert!(!fires(queue(Some(71), None, 300)));
    assert!(fires(queue(Some(0), Some(70), 300)), "nothing ended for half an hour");
    assert!(!fires(queue(Some(0), Some(99), 300)), "a long queue is no standstill");
    assert!(!fires(queue(None, Some(0), 300)), "nothing is due");
    assert!(!fires(queue(Some(30), None, 3_600)), "one attempt may take an hour");
    let told = told_of(vec![(100, queue(Some(50), None, 300)), (101, queue(Some(50), Some(101), 300))]);
    assert_eq!(told.last(), Some(&(101, Condition::Stalled, "over")));
}

fn field(recent: (u64, u64), earlier: (u64, u64)) -> Facts {
    let share = |(found, records)| Share::new(found, records);
    let fields =
        vec![FieldFacts { pipeline: name(), field: "price".into(), recent: share(recent), earlier: share(earlier) }];
    Facts { fields, ..Facts::default() }
}

#[test]
fn a_field_that_gets_lost_is_told() {
    let usual = (980, 1_000);
    assert_eq!(told_of(vec![(0, field((2, 3), usual))]), [], "too few");
    assert_eq!(told_of(vec![(0, field((85, 100), usual))]), [], "not by so much");
    let told =
        told_of(vec![(0, field((40, 100), usual)), (1, field((40, 100), (40, 100))), (2, field((97, 100), usual))]);
    assert_eq!(told, [(0, Condition::Coverage, "fired"), (2, Condition::Coverage, "over")]);
}

#[test]
fn letters_about_to_be_discarded_are_told() {
    let facts = |letters| {
        let expiring = Some(Expiring { letters, more: false, first: at(600) });
        let pipeline = PipelineFacts { expiring, ..PipelineFacts::default() };
        Facts { pipelines: [(name(), pipeline)].into(), ..Facts::default() }
    };
    let told = told_of(vec![(0, facts(4)), (1, facts(7)), (2, facts(8)), (3, facts(0))]);
    let expected = [(0, "fired"), (2, "grown"), (3, "over")].map(|(at, what)| (at, Condition::Expiry, what));
    assert_eq!(told, expected);
}

#[test]
fn as_many_letters_as_a_pipeline_may_have_are_told() {
    let facts = |letters, letters_max| {
        let pipeline = PipelineFacts { letters, letters_max, ..PipelineFacts::default() };
        Facts { pipelines: [(name(), pipeline)].into(), ..Facts::default() }
    };
    let counts = [99, 100, 130, 95, 90];
    let told = told_of(counts.into_iter().zip(0..).map(|(letters, now)| (now, facts(letters, Some(100)))).collect());
    assert_eq!(told, [(1, Condition::Letters, "fired"), (4, Condition::Letters, "over")]);
    assert_eq!(told_of(vec![(0, facts(u64::MAX, None))]), [], "there is no limit");
    let lifted = told_of(vec![(0, facts(100, Some(100))), (1, facts(100, None))]);
    assert_eq!(lifted.last(), Some(&(1, Condition::Letters, "over")));
}

#[test]
fn a_disk_that_fills_up_is_told_each_time_half_of_the_rest_is_gone() {
    let mib = |mib: u64| Facts { free_bytes: Some(mib << 20), ..Facts::default() };
    let sizes = [2_000, 1_000, 600, 500, 300, 200, 1_050, 1_200];
    let told = told_of(sizes.into_iter().enumerate().map(|(now, free)| (now as i64, mib(free))).collect());
    let expected = [(1, "fired"), (3, "grown"), (5, "grown"), (7, "over")];
    assert_eq!(told, expected.map(|(at, what)| (at, Condition::Disk, what)));
}

/// Of two files with other thresholds neither ends what the other sees, be it of a pipeline or of none.
#[test]
fn what_two_files_see_otherwise_does_not_go_back_and_forth() {
    let book = |file: &str, disk, breaker| {
        let all = crate::alerts::Rules { disk, breaker, ..Default::default() };
        RuleBook { all, judged: Some([name()].into()), file: file.to_owned(), ..RuleBook::default() }
    };
    let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
    let strict = book("strict", Some(2_000), minutes(5));
    let others = [book("lax", Some(1_000), minutes(60)), book("off", None, None)];
    let mut known = Alerts::new();
    for minute in 10..50 {
        let facts = Facts { free_bytes: Some(1_500), ..held(minute, 3, minute) };
        for alert in judge(&strict, &facts, &known, at(minute)) {
            known.insert(alert.key.clone(), alert);
        }
        for other in &others {
            assert_eq!(judge(other, &facts, &known, at(minute)), []);
        }
    }
    let fired: Vec<_> = known.values().map(|alert| (alert.condition, alert.since, alert.is_firing())).collect();
    assert_eq!(fired, [(Condition::Breaker, at(10), true), (Condition::Disk, at(10), true)]);
    let well = Facts { free_bytes: Some(2_500), ..Facts::default() };
    assert!(judge(&strict, &well, &known, at(50)).iter().all(|alert| !alert.is_firing()));
    assert_eq!(judge(&others[0], &well, &known, at(50)), [], "that it is over is said by who saw it");
}
