//! Dead letters brought back: plans, what-ifs, ramps, gates, edits, and kills in the middle of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{DemoSite, Sandbox, eventually, json_lines, kill_after, kills_wanted};

/// Fails until the file `fixed` exists; the input may ask for more.
const FLAKY: &str = r#"
read -r job
echo "$REDRIVE_JOB" >> ran.log
case "$job" in *'"never":true'*) echo 'no such luck' >&2; exit 65 ;; esac
[ -e fixed ] || { echo "task $REDRIVE_ATTEMPT broke" >&2; exit 65; }
echo '{"ok":true}'
"#;

const CONFIG: &str = "[pipeline.p]\ncommand = [\"sh\", \"flaky.sh\"]\nout = \"out.jsonl\"\n";

/// A folder with the pipeline and nothing done yet.
fn fresh() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", CONFIG);
    sandbox.write("flaky.sh", FLAKY);
    sandbox
}

/// The same with so many dead letters.
fn with_dead(letters: usize) -> Sandbox {
    let sandbox = fresh();
    let tasks: String = (0..letters).map(|n| format!("{}\n", json!({"n": n}))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox
}

fn newest_replay(sandbox: &Sandbox) -> Value {
    sandbox.redrive("replay list --json").expect(0).json_lines().remove(0)
}

fn only_cause(sandbox: &Sandbox) -> Value {
    let mut causes = sandbox.redrive("cause list --json").expect(0).json_lines();
    assert_eq!(causes.len(), 1, "{causes:?}");
    causes.remove(0)
}

#[test]
fn a_fix_brings_them_back() {
    let sandbox = with_dead(40);
    let cause = only_cause(&sandbox);
    let id = cause["id"].as_str().expect("an id");
    assert_eq!((&cause["dead"], &cause["state"]), (&json!(40), &json!("new")));
    let plan = sandbox.run(&["replay", "plan", "--cause", id, "--json"]).expect(0).json();
    assert_eq!((&plan["included"], &plan["matched"], &plan["mode"]), (&json!(40), &json!(40), &json!("suited")));
    sandbox.write("fixed", "");
    let said = sandbox.run(&["replay", "start", "--cause", &id[..5], "--name", "mended"]).expect(0);
    assert!(said.stderr.contains("recovered: 40 of 40"), "{}", said.stderr);
    let replay = newest_replay(&sandbox);
    assert_eq!((&replay["name"], &replay["state"]), (&json!("mended"), &json!("done")));
    assert_eq!(replay["progress"]["recovered"], 40);
    assert_eq!(json_lines(&sandbox.read("out.jsonl")).len(), 40, "results reach the output");
    let ledger = sandbox.ledger("p");
    assert_eq!((&ledger["done"], &ledger["recovered"], &ledger["dead"]), (&json!(40), &json!(40), &json!(0)));
    assert!(sandbox.redrive("cause list").expect(0).stdout.contains("no causes"));
    let resolved = sandbox.redrive("cause list --state resolved --json").expect(0).json_lines();
    assert_eq!((resolved.len(), &resolved[0]["recovered"]), (1, &json!(40)));
    sandbox.assert_sound();
}

#[test]
fn a_replay_that_helps_nothing_stops_itself() {
    let sandbox = with_dead(30);
    let said = sandbox.redrive("replay start --pipeline p -j 1").expect(6);
    assert!(said.stderr.contains("for the same cause as before"), "{}", said.stderr);
    assert!(said.stderr.contains("letters failed again, more than 25 %"), "{}", said.stderr);
    let failed = newest_replay(&sandbox)["progress"]["failed"].as_u64().expect("a number");
    assert!((2..=6).contains(&failed), "one may be unlucky, and no more than a step is tried: {failed}");
    assert_eq!(sandbox.read("ran.log").lines().count() as u64, 30 + failed);
    let id = newest_replay(&sandbox)["id"].as_str().expect("an id").to_owned();
    sandbox.write("fixed", "");
    let said = sandbox.redrive(&format!("replay resume {id}")).expect(3).stderr;
    assert!(said.contains(&format!("recovered: {} of 30", 30 - failed)), "{said}");
    sandbox.redrive("replay resume last").expect(1).complains("is done");
    let letters = sandbox.redrive(&format!("replay show {id} --letters --state failed --json")).expect(0).json_lines();
    assert_eq!(letters.len() as u64, failed);
    assert_eq!(letters[0]["cause"], letters[0]["cause_after"]);
    sandbox.assert_sound();
}

#[test]
fn a_replay_says_how_fast_it_goes_and_how_old_its_oldest_letter_is() {
    let sandbox = with_dead(3);
    sandbox.redrive("replay start --pipeline p --detach").expect(0);
    let shown = sandbox.redrive("replay show last").expect(0).stdout;
    assert!(shown.contains("  oldest    of its letters that are left, died ") && !shown.contains("  speed"), "{shown}");
    assert!(newest_replay(&sandbox)["oldest"].is_string());
    sandbox.write("fixed", "");
    sandbox.redrive("replay pause last").expect(0);
    sandbox.redrive("replay resume last").expect(0);
    let shown = sandbox.redrive("replay show last").expect(0).stdout;
    assert!(!shown.contains("  oldest") && shown.contains("  speed     ") && shown.contains("/min"), "{shown}");
    let per_minute = &sandbox.redrive("replay show last --json").expect(0).json()["per_minute"];
    assert!(per_minute.as_f64().is_some_and(|per_minute| per_minute > 0.0), "{per_minute}");
    let listed = sandbox.redrive("replay list").expect(0).stdout;
    assert!(listed.contains("speed") && listed.contains("oldest") && listed.contains("/min"), "{listed}");
}

#[test]
fn one_unlucky_letter_pauses_nothing() {
    let sandbox = fresh();
    let tasks: String = (0..12).map(|n| format!("{}\n", json!({"n": n, "never": n == 0}))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl -j 1").expect(3);
    sandbox.write("fixed", "");
    sandbox.redrive("replay start --pipeline p").expect(3).complains("recovered: 11 of 12");
}

#[test]
fn last_is_the_last_to_which_it_can_be_done() {
    let sandbox = with_dead(8);
    sandbox.redrive("replay start --pipeline p --ramp none -j 1").expect(3);
    sandbox.redrive("replay resume last").expect(1).complains("is done");
    sandbox.redrive("replay start --pipeline p --refail-max 0% -j 1").expect(6);
    let paused = newest_replay(&sandbox)["id"].as_str().expect("an id").to_owned();
    sandbox.write("fixed", "");
    sandbox.write("more.jsonl", "{\"n\":\"x\",\"never\":true}\n");
    sandbox.redrive("run more.jsonl").expect(3);
    let id = sandbox.redrive("dead list --text never --json").expect(0).json_lines()[0]["id"].clone();
    sandbox.redrive(&format!("replay start {}", id.as_str().expect("an id"))).expect(3);
    assert_ne!(newest_replay(&sandbox)["id"], paused.as_str(), "a newer one is done");
    sandbox.redrive("replay pause last").expect(1).complains("is done");
    sandbox.redrive("replay resume last").expect(3);
    assert_eq!(sandbox.redrive(&format!("replay show {paused} --json")).expect(0).json()["state"], "done");
}

#[test]
fn retry_by_name_does_not_count_towards_the_cap_and_one_by_filter_does() {
    let sandbox = fresh();
    sandbox.write("redrive.toml", CONFIG.to_owned() + "[pipeline.p.retry]\nbase = \"1ms\"\n");
    sandbox.write("flaky.sh", "echo no >&2; echo x >> ran.log; exit 75");
    sandbox.write("tasks.jsonl", "{\"a\":1}\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    let number = sandbox.dead()[0]["number"].clone();
    sandbox.redrive(&format!("retry {number}")).expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!(letter["attempts"], 8, "four more attempts, as a run has");
    assert_ne!(letter["gate"], "never");
    assert_eq!(sandbox.read("ran.log").lines().count(), 8);
    sandbox.redrive("dead export letters.jsonl").expect(0);
    sandbox.redrive("retry --pipeline p").expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["attempts"], &letter["gate"]), (&json!(10), &json!("never")), "two more, and it is over");
    let verdict = letter["verdict"].as_str().expect("a verdict");
    assert_eq!(verdict, "permanently failed: 6 attempts of at most 6, and 4 when it was retried by name");
    let copy = fresh();
    copy.write("redrive.toml", sandbox.read("redrive.toml"));
    copy.write("flaky.sh", "echo no >&2; exit 75");
    copy.write("letters.jsonl", sandbox.read("letters.jsonl"));
    copy.redrive("dead import letters.jsonl").expect(0);
    assert_eq!((&copy.dead()[0]["attempts"], &copy.dead()[0]["uncounted"]), (&json!(8), &json!(4)));
    copy.redrive("retry --pipeline p").expect(3);
    assert_eq!(copy.dead()[0]["attempts"], 10, "an export says which attempts did not count");
}

#[test]
fn what_failed_too_often_is_permanently_failed() {
    let sandbox = fresh();
    sandbox.write("redrive.toml", CONFIG.to_owned() + "[pipeline.p.retry]\nbase = \"1ms\"\n");
    sandbox.write("flaky.sh", "echo no >&2; echo x >> ran.log; exit 75");
    sandbox.write("tasks.jsonl", "{\"a\":1}\n{\"a\":2}\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    assert_eq!(sandbox.read("ran.log").lines().count(), 8, "four attempts each");
    let said = sandbox.redrive("replay start --pipeline p --refail-max 100%").expect(3);
    assert!(said.stderr.contains("permanently failed: 6 attempts of at most 6"), "{}", said.stderr);
    assert_eq!(sandbox.read("ran.log").lines().count(), 12, "two more attempts each");
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["attempts"], &letter["gate"]), (&json!(6), &json!("never")));
    let said = sandbox.redrive("replay start --pipeline p").expect(1);
    assert!(said.stdout.contains("permanently failed: --force"), "{}", said.stdout);
    sandbox.redrive("replay start --pipeline p --force").expect(2).complains("--why");
    sandbox.run(&["replay", "start", "--pipeline", "p", "--force", "--why", "new key", "--refail-max", "1"]).expect(3);
    assert_eq!(sandbox.read("ran.log").lines().count(), 14, "forced: one more each");
    assert_eq!(newest_replay(&sandbox)["force_why"], "new key");
}

#[test]
fn a_wish_without_a_choice_is_refused() {
    let sandbox = with_dead(2);
    for command in ["plan", "try", "start"] {
        sandbox.redrive(&format!("replay {command}")).expect(2).complains("say which dead letters");
    }
    sandbox.redrive("replay start --cause beef00").expect(1).complains("no cause beef00");
    sandbox.redrive("replay start --reason dns").expect(1).complains("no dead letters are like that");
    sandbox.redrive("replay start --pipeline p --rate fast").expect(2).complains("not a rate");
    sandbox.redrive("replay start --pipeline p --ramp 0").expect(2).complains("not a ramp");
    sandbox.redrive("replay start --pipeline p --saved").expect(2).complains("pure = true");
    sandbox.redrive("replay try --pipeline p").expect(2).complains("pure = true");
    sandbox.redrive("replay show 01a1dea7-510b-74db-87ac-50d7aa74bc59").expect(1).complains("no replay");
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    sandbox.redrive(&format!("replay start {id} --reason timeout")).expect(2).complains("not both");
}

#[test]
fn an_input_can_be_corrected_and_the_original_is_kept() {
    let sandbox = fresh();
    sandbox.write("tasks.jsonl", "{\"never\":true,\"n\":1}\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.write("fixed", "");
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    sandbox.redrive(&format!("replay start {id} --set n=2 --ramp none")).expect(3);
    let letter = &sandbox.dead()[0];
    assert_eq!((&letter["input"]["n"], &letter["original"]["n"]), (&json!(2), &json!(1)));
    let shown = sandbox.redrive(&format!("dead show {id}")).expect(0).stdout;
    assert!(shown.contains("input as it was accepted"), "{shown}");
    sandbox.redrive(&format!("replay start {id} --set never=false")).expect(0);
    assert_eq!(json_lines(&sandbox.read("out.jsonl"))[0]["input"]["never"], false);
}

#[test]
fn workers_take_detached_replays_over() {
    let sandbox = with_dead(10);
    sandbox.write("fixed", "");
    let said = sandbox.redrive("replay start --pipeline p --detach").expect(0).stdout;
    assert!(said.contains("redrive replay watch"), "{said}");
    assert_eq!(sandbox.ledger("p")["dead"], 10, "nothing happens without a worker");
    sandbox.redrive("work --drain").expect(0);
    let replay = newest_replay(&sandbox);
    assert_eq!((&replay["state"], &replay["progress"]["recovered"]), (&json!("done"), &json!(10)));
    let id = replay["id"].as_str().expect("an id");
    sandbox.redrive(&format!("replay watch {id}")).expect(0).complains("recovered: 10 of 10");
}

#[test]
fn a_run_does_not_wait_for_a_paused_replay() {
    let sandbox = with_dead(5);
    sandbox.redrive("replay start --pipeline p --ramp 1,1,3 -j 1").expect(6);
    sandbox.write("fixed", "");
    sandbox.write("more.jsonl", "{\"n\":\"new\"}\n");
    sandbox.redrive("run more.jsonl").expect(0);
    let id = newest_replay(&sandbox)["id"].as_str().expect("an id").to_owned();
    let said = sandbox.redrive(&format!("replay cancel {id}")).expect(0).stdout;
    assert!(said.contains("3 letters stay dead"), "{said}");
    sandbox.redrive(&format!("replay pause {id}")).expect(1).complains("is cancelled");
    sandbox.redrive("replay start --pipeline p").expect(0);
    assert_eq!(sandbox.ledger("p")["dead"], 0);
    sandbox.assert_sound();
}

#[test]
fn letters_are_replayed_by_themselves() {
    let sandbox = fresh();
    let policy = "auto_replay = { timeout = { every = \"1s\", times = 2 } }\n[pipeline.p.retry]\nattempts = 1\n";
    sandbox.write("redrive.toml", CONFIG.to_owned() + policy);
    sandbox
        .write("flaky.sh", "echo x >> ran.log; [ -e fixed ] || { echo '{\"reason\":\"timeout\"}'; exit 1; }; echo 1");
    sandbox.write("tasks.jsonl", "{\"a\":1}\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.write("fixed", "");
    let mut worker = sandbox.spawn(&["work"]);
    eventually("it recovers", || sandbox.ledger("p")["done"] == 1);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    let replay = newest_replay(&sandbox);
    assert_eq!((&replay["automatic"], &replay["actor"]), (&json!(true), &json!("policy")));
    sandbox.assert_sound();
}

const SHOP: &str = r#"
[pipeline.shop]
handler = "http"
out = "records.jsonl"
[pipeline.shop.extract.fields]
title = "h1.title::text"
price = { select = "PRICE", type = "number" }
"#;

/// The layout changes, the rule is corrected, and the saved pages are read again with the shop gone.
#[test]
fn saved_pages_are_enough() {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    sandbox.write("redrive.toml", SHOP.replace("PRICE", ".price-tag-main::text"));
    let task = |n: u32| format!("{}\n", json!({"url": format!("http://{}/products/{n}", site.address)}));
    // 88 has its price on request: no rule finds it.
    let tasks: String = [61, 62, 63, 64, 65, 66, 88].into_iter().map(task).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    drop(site);
    let cause = only_cause(&sandbox)["id"].as_str().expect("an id").to_owned();
    let before = sandbox.redrive("dead export").expect(0).stdout;
    let tried = sandbox.redrive(&format!("replay try --cause {cause} --json")).expect(3).json();
    assert_eq!((&tried["tried"], &tried["recovered"]), (&json!(7), &json!(0)), "the rule is the old one");
    assert_eq!(tried["remaining"][0]["cause"], cause.as_str());
    sandbox.write("redrive.toml", SHOP.replace("PRICE", ".price data::attr(value)"));
    let tried = sandbox.redrive(&format!("replay try --cause {cause} --json")).expect(3).json();
    assert_eq!((&tried["tried"], &tried["recovered"]), (&json!(7), &json!(6)));
    assert_eq!((tried["remaining"].as_array().map(Vec::len), &tried["remaining"][0]["letters"]), (Some(1), &json!(1)));
    assert_eq!(sandbox.redrive("dead export").expect(0).stdout, before, "a trial changes nothing");
    let said = sandbox.redrive(&format!("replay start --cause {cause} --ramp 2,2")).expect(3);
    assert!(said.stdout.contains("7 letters, from their saved payloads"), "{}", said.stdout);
    let records = json_lines(&sandbox.read("records.jsonl"));
    assert_eq!(records.len(), 6);
    assert!(records.iter().all(|record| record["result"]["price"].is_number()));
    let left = sandbox.dead();
    assert_eq!((left.len(), &left[0]["replays"], &left[0]["attempts"]), (1, &json!(1), &json!(2)));
    assert_ne!(left[0]["cause"], cause.as_str(), "it has a cause of its own");
    assert_eq!(left[0]["failures"][1]["payload"]["hash"], left[0]["failures"][0]["payload"]["hash"]);
    sandbox.redrive("payload verify").expect(0);
    sandbox.assert_sound();
}

/// A command that declares itself pure works from the saved payload too.
#[test]
fn a_pure_command_works_from_what_was_saved() {
    let sandbox = Sandbox::new();
    for mode in ["process", "persistent"] {
        let handler = r#"
import json, os, sys
for line in sys.stdin:
    job = json.loads(line)
    saved = job.get("saved")
    if saved:
        page = open(saved["file"]).read()
        assert os.environ.get("REDRIVE_SAVED", saved["file"]) == saved["file"]
        answer = {"error": "still wrong"} if "bad" in page else {"page": page, "_proxy": "none"}
    else:
        open(job.get("payload_file") or os.environ["REDRIVE_PAYLOAD"], "w").write(job["input"]["page"])
        answer = {"error": "cannot read it"}
    if os.environ["MODE"] == "persistent":
        print(json.dumps({"id": job["id"], ("result" if "page" in answer else "failure"): answer}), flush=True)
    else:
        print(json.dumps(answer))
        sys.exit(0 if "page" in answer else 65)
"#;
        sandbox.write("handler.py", handler);
        let config = format!(
            "[pipeline.{mode}]\ncommand = [\"python3\", \"handler.py\"]\nmode = \"{mode}\"\npure = true\nout = \"{mode}.jsonl\"\n\
             env = {{ MODE = \"{mode}\" }}\n[pipeline.{mode}.retry]\nattempts = 1\n"
        );
        sandbox.write("redrive.toml", config);
        sandbox.write("tasks.jsonl", format!("{{\"page\":\"good {mode}\"}}\n{{\"page\":\"bad {mode}\"}}\n"));
        sandbox.redrive("run tasks.jsonl").expect(3);
        let tried = sandbox.redrive(&format!("replay try --pipeline {mode} --json")).expect(3).json();
        assert_eq!((&tried["tried"], &tried["recovered"]), (&json!(2), &json!(1)), "{mode}: {tried}");
        sandbox.redrive(&format!("replay start --pipeline {mode} --saved --ramp none")).expect(3);
        let result = &json_lines(&sandbox.read(&format!("{mode}.jsonl")))[0]["result"];
        assert_eq!(result["page"], format!("good {mode}"), "{result}");
        assert_eq!(result.get("_proxy"), None, "the label is counted, not kept");
    }
    sandbox.assert_sound();
}

/// A cancelled replay leaves nothing behind: also what a killed worker held is dead again. What had begun counts as an attempt,
/// the rest is as it was.
#[test]
fn cancelling_takes_back_what_a_killed_worker_held() {
    let sandbox = fresh();
    sandbox.write("redrive.toml", format!("{CONFIG}concurrency = 2\n"));
    let script = "[ -e fixed ] || exit 65; sed 's/.*\"n\":\\([0-9]*\\).*/\\1/' >> begun; sleep 30";
    sandbox.write("flaky.sh", script);
    let tasks: String = (0..12).map(|n| format!("{}\n", json!({"n": n}))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    let before = sandbox.dead();
    sandbox.write("fixed", "");
    let child = sandbox.spawn(&["replay", "start", "--pipeline", "p", "--ramp", "none"]);
    eventually("some have begun", || sandbox.read("begun").lines().count() == 2);
    assert!(kill_after(child, Duration::ZERO));
    let id = newest_replay(&sandbox)["id"].as_str().expect("an id").to_owned();
    let said = sandbox.redrive(&format!("replay cancel {id}")).expect(0).stdout;
    assert!(said.contains("12 letters stay dead"), "{said}");
    let begun: Vec<u64> = sandbox.read("begun").lines().map(|n| n.parse().expect("a number")).collect();
    let was = |letter: &Value| before.iter().find(|was| was["id"] == letter["id"]).expect("the same letters").clone();
    for letter in sandbox.dead() {
        if !begun.contains(&letter["input"]["n"].as_u64().expect("a number")) {
            assert_eq!(letter, was(&letter), "nobody had begun it");
            continue;
        }
        assert_eq!((&letter["attempts"], &letter["replays"]), (&json!(2), &json!(1)), "it began");
        assert!(letter["verdict"].as_str().expect("said").contains("attempt 2 was cut short"), "{letter}");
        for field in ["reason", "code", "message", "gate", "failures"] {
            assert_eq!(letter[field], was(&letter)[field], "{field}");
        }
    }
    sandbox.assert_sound();
}

/// Without a configuration a command can say on the spot that it is pure.
#[test]
fn a_command_can_be_pure_without_a_configuration() {
    let sandbox = Sandbox::new();
    let handler = r#"
if [ -n "$REDRIVE_SAVED" ]; then cat "$REDRIVE_SAVED"; else echo '"a page"' > "$REDRIVE_PAYLOAD"; exit 65; fi
"#;
    sandbox.write("h.sh", handler);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("run tasks.jsonl -- sh h.sh").expect(3);
    sandbox.redrive("replay try --pipeline default -- sh h.sh").expect(2).complains("--pure");
    let said = sandbox.redrive("replay try --pure --pipeline default -- sh h.sh").expect(0).stdout;
    assert!(said.contains("1 of 1 would recover"), "{said}");
    sandbox.redrive("replay start --detach --pipeline default -- sh h.sh").expect(2).complains("--detach");
    let ran = sandbox.redrive("replay start --pure --saved --pipeline default --out out.jsonl -- sh h.sh").expect(0);
    assert!(ran.stdout.contains("from their saved payloads"), "{}", ran.stdout);
    assert_eq!(json_lines(&sandbox.read("out.jsonl"))[0]["result"], "a page");
}

/// Enough of them that none of the kills comes too late.
const LETTERS_PER_KILL: usize = 40;

/// Killed again and again, a replay goes on where it was: no letter is lost, none is sent twice, the counters are right.
#[test]
fn killed_again_and_again_it_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "redrive.toml",
        CONFIG.to_owned() + "concurrency = 8\n[pipeline.p.retry]\nattempts = 2\nbase = \"1ms\"\n",
    );
    // Some fail for good, some need one more attempt.
    let handler = r#"
read -r job
[ -e fixed ] || exit 65
echo "$REDRIVE_JOB" >> ran.log
sleep 0.01
case "$job" in *'"do":"die"'*) exit 65 ;; *'"do":"retry"'*) [ "$REDRIVE_ATTEMPT" -gt 2 ] || exit 75 ;; esac
echo 1
"#;
    sandbox.write("flaky.sh", handler);
    let what = |n: usize| {
        if n % 20 == 7 {
            "die"
        } else if n % 15 == 4 {
            "retry"
        } else {
            "work"
        }
    };
    let wanted = kills_wanted();
    let count = wanted * LETTERS_PER_KILL;
    let tasks: String = (0..count).map(|n| format!("{}\n", json!({"n": n, "do": what(n)}))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.write("fixed", "");
    sandbox.redrive("replay start --pipeline p --detach --ramp 1,5,20,100").expect(0);
    let id = newest_replay(&sandbox)["id"].as_str().expect("an id").to_owned();
    let mut kills = 0;
    for round in 0.. {
        let args: &[&str] = if round % 2 == 0 { &["replay", "resume", &id] } else { &["work"] };
        kills += usize::from(kill_after(sandbox.spawn(args), Duration::from_millis(fastrand::u64(20..140))));
        if kills >= wanted {
            break;
        }
        assert!(round < wanted * 8, "only {kills} kills");
    }
    let open = newest_replay(&sandbox)["state"] == "running";
    if open {
        sandbox.redrive(&format!("replay resume {id}")).expect(3);
    }
    sandbox.assert_sound();
    let dying = (0..count).filter(|n| what(*n) == "die").count();
    let replay = newest_replay(&sandbox);
    let progress = &replay["progress"];
    assert_eq!(replay["state"], "done");
    assert_eq!((&progress["recovered"], &progress["failed"]), (&json!(count - dying), &json!(dying)), "{replay}");
    let ledger = sandbox.ledger("p");
    assert_eq!(
        (&ledger["done"], &ledger["recovered"], &ledger["dead"]),
        (&json!(count - dying), &json!(count - dying), &json!(dying))
    );
    for letter in sandbox.dead() {
        assert_eq!(letter["replays"], 1, "none was sent twice: {letter}");
    }
    let letters = sandbox.redrive(&format!("replay show {id} --letters --all --json")).expect(0).json_lines();
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    letters.iter().for_each(|letter| *states.entry(letter["state"].as_str().expect("a state")).or_default() += 1);
    assert_eq!(states, BTreeMap::from([("recovered", count - dying), ("failed", dying)]));
}

crate::network::over_the_network! {
    kept: [a_fix_brings_them_back, retry_by_name_does_not_count_towards_the_cap_and_one_by_filter_does],
    soak: [
        last_is_the_last_to_which_it_can_be_done,
        a_replay_that_helps_nothing_stops_itself,
        one_unlucky_letter_pauses_nothing,
        what_failed_too_often_is_permanently_failed,
        a_wish_without_a_choice_is_refused,
        an_input_can_be_corrected_and_the_original_is_kept,
        a_run_does_not_wait_for_a_paused_replay,
        a_pure_command_works_from_what_was_saved,
        a_command_can_be_pure_without_a_configuration,
    ],
}
