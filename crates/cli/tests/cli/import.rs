//! `redrive dead import`: what is checked at the door, and what becomes of keys that are known.

use serde_json::{Value, json};

use crate::harness::Sandbox;

/// A store with letters of two keys, `a` and `b`.
fn exported() -> (Sandbox, Vec<Value>) {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"key\":\"a\",\"n\":1}\n{\"key\":\"b\",\"n\":2}\n");
    sandbox.write("fail.sh", "echo '{\"failure\":{\"reason\":\"blocked\",\"message\":\"no\"}}'; exit 1");
    sandbox.redrive("run tasks.jsonl --pipeline shop -- sh fail.sh").expect(3);
    let letters = sandbox.dead();
    assert_eq!(letters.len(), 2);
    (sandbox, letters)
}

fn lines(letters: &[Value]) -> String {
    letters.iter().map(|letter| format!("{letter}\n")).collect()
}

/// The letter with some of its fields changed.
fn with(letter: &Value, fields: Value) -> Value {
    let mut changed = letter.clone();
    for (name, value) in fields.as_object().expect("an object") {
        changed[name] = value.clone();
    }
    changed
}

#[test]
fn a_key_that_is_done_or_queued_here_is_not_worked_on_twice() {
    let (from, letters) = exported();
    let here = Sandbox::new();
    here.write("tasks.jsonl", "{\"key\":\"a\",\"n\":1}\n");
    here.redrive("run tasks.jsonl --pipeline shop -- true").expect(0);
    here.write("more.jsonl", "{\"key\":\"b\",\"n\":2}\n");
    here.redrive("push more.jsonl --pipeline shop").expect(0);
    here.write("letters.jsonl", from.redrive("dead export").expect(0).stdout);
    let ran = here.redrive("dead import letters.jsonl").expect(0);
    assert!(ran.stdout.contains("0 imported") && ran.stdout.contains("2 skipped"), "{}", ran.stdout);
    let ran = ran.complains("its key a belongs to task").complains("which is done").complains("which is queued");
    assert!(ran.stderr.contains("letters.jsonl:1: skipped") && ran.stderr.contains("letters.jsonl:2: skipped"));
    assert_eq!((letters.len(), here.dead().len()), (2, 0));
    here.assert_sound();
}

#[test]
fn a_letter_that_died_again_elsewhere_is_the_same_letter() {
    let (here, letters) = exported();
    let (old, id) = (&letters[0], "0198f2c5-7d3e-7a10-9c51-0242ac120002");
    let later = "2099-01-01T00:00:00.000Z";
    let failure = with(&old["failures"][0], json!({"message": "still no", "reason": "timeout"}));
    // A minute later than here, from another store.
    let died: String = now_plus_a_minute();
    let failure = with(&failure, json!({"at": died}));
    let again = with(
        old,
        json!({"id": id, "died_at": died, "reason": "timeout", "message": "still no", "failures": [failure]}),
    );
    here.write("again.jsonl", lines(&[again.clone(), again.clone(), with(&again, json!({"died_at": later}))]));
    let ran = here.redrive("dead import again.jsonl").expect(4);
    assert!(ran.stdout.contains("1 failed again") && ran.stdout.contains("1 skipped"), "{}", ran.stdout);
    ran.complains("again.jsonl:3: not a dead letter: died_at is 2099-01-01T00:00:00.000Z, which is in the future");
    let dead = here.dead();
    let grown = dead.iter().find(|letter| letter["id"] == old["id"]).expect("the same letter");
    assert_eq!(dead.len(), 2);
    assert_eq!((&grown["reason"], &grown["message"]), (&json!("timeout"), &json!("still no")));
    assert_eq!((&grown["attempts"], grown["failures"].as_array().map(Vec::len)), (&json!(2), Some(2)));
    here.assert_sound();
    here.redrive("dead import again.jsonl").expect(4);
    assert_eq!(here.dead(), dead, "the same file again changes nothing");
}

fn now_plus_a_minute() -> String {
    let millis = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis();
    redrive_core::time::Timestamp::from_millis(i64::try_from(millis).expect("it fits") + 60_000).to_string()
}

#[test]
fn what_cannot_be_is_refused_with_its_line_and_field() {
    let (_from, letters) = exported();
    let here = Sandbox::new();
    let good = &letters[0];
    let odd = [
        with(good, json!({"key": "x".repeat(1_000_000)})),
        with(good, json!({"replays": 4_294_967_295_u32})),
        with(good, json!({"crashes": 4_294_967_295_u32})),
        with(good, json!({"attempts": 1_000_001})),
        with(good, json!({"attempts": -1})),
    ];
    here.write("letters.jsonl", format!("{}nonsense\n{}", lines(&odd), lines(&letters)));
    let ran = here.redrive("dead import letters.jsonl").expect(4);
    assert_eq!(ran.stdout, "2 imported, 0 known already, 6 broken\n");
    let mut ran = ran;
    for said in [
        "letters.jsonl:1: not a dead letter: key is longer than 512 bytes",
        "letters.jsonl:2: not a dead letter: replays is 4294967295",
        "letters.jsonl:3: not a dead letter: crashes is 4294967295",
        "letters.jsonl:4: not a dead letter: attempts is 1000001",
        "letters.jsonl:5: not a dead letter: invalid value",
        "letters.jsonl:6: not a dead letter",
    ] {
        ran = ran.complains(said);
    }
    here.assert_sound();
}

#[test]
fn payloads_that_did_not_come_along_are_missing() {
    let (from, to) = (Sandbox::new(), Sandbox::new());
    from.write("tasks.jsonl", "{\"key\":\"a\"}\n");
    let script = "echo page > \"$REDRIVE_PAYLOAD\"; echo '{\"failure\":{\"reason\":\"schema_validation\"}}'; exit 1";
    from.write("fail.sh", script);
    from.redrive("run tasks.jsonl --pipeline shop -- sh fail.sh").expect(3);
    from.redrive("dead export letters.jsonl").expect(0);
    to.write("letters.jsonl", from.read("letters.jsonl"));
    to.redrive("dead import letters.jsonl").expect(0);
    let letter = to.dead().remove(0);
    assert_eq!(letter["payload_missing"], true);
    let id = letter["id"].as_str().expect("an id");
    let shown = to.redrive(&format!("dead show {id}")).expect(0).stdout;
    assert!(shown.contains("missing: the letter was imported without its bytes"), "{shown}");
    let plan = to.redrive("replay plan --pipeline shop --json").expect(0).json();
    assert_eq!((&plan["saved"], &plan["included"]), (&json!(0), &json!(1)));
    let saved = to.redrive("replay plan --pipeline shop --saved --json").expect(0).json();
    assert_eq!((&saved["included"], &saved["excluded"]["payload_gone"]), (&json!(0), &json!(1)));
    to.assert_sound();
}

/// What the scripts that Redrive replaces have: an array, written by hand, with whatever names.
const CAPTCHA_DLQ: &str = r#"[
  {"sitekey": "6Lc-1", "pageurl": "https://shop.example/a", "error": "ERROR_NO_SLOT_AVAILABLE", "attempts": 5, "timestamp": 1763215320},
  {"sitekey": "6Lc-2", "pageurl": "https://shop.example/b", "error": "ERROR_NO_SLOT_AVAILABLE", "attempts": 5, "timestamp": 1763215321500},
  {"sitekey": "6Lc-3", "pageurl": "https://shop.example/c", "error": "request to https://shop.example/c timed out after 30 s",
   "failed_at": "2025-11-15 14:02:09", "status": 504, "stack": ["at solve", "at main"], "proxy": "http://me:geheim@p1.lan:8080"}
]"#;

#[test]
fn the_file_of_a_script_is_taken_in_once_and_can_be_worked_on() {
    let here = Sandbox::new();
    here.write("captcha-dlq.json", CAPTCHA_DLQ);
    let foretold = here.redrive("dead import captcha-dlq.json -p solver --dry-run").expect(0).stdout;
    assert!(foretold.starts_with("3 would be imported, 0 known already, 0 broken"), "{foretold}");
    assert!(foretold.contains("ERROR_NO_SLOT_AVAILABLE") && foretold.contains("nothing has happened"), "{foretold}");
    assert!(!here.path(".redrive").exists(), "who only asks makes no store");
    let ran = here.redrive("dead import captcha-dlq.json -p solver").expect(0);
    assert_eq!(ran.stdout, "3 imported, 0 known already, 0 broken\n");
    assert_eq!(here.redrive("cause list --json").expect(0).json_lines().len(), 2, "grouped as ever");
    let dead = here.dead();
    let timeout = dead.iter().find(|letter| letter["http_status"] == 504).expect("a letter");
    assert_eq!((&timeout["died_at"], &timeout["proxy"]), (&json!("2025-11-15T14:02:09.000Z"), &json!("p1.lan:8080")));
    assert_eq!(timeout["input"], json!({"sitekey": "6Lc-3", "pageurl": "https://shop.example/c"}));
    assert!(!here.redrive("dead export").expect(0).stdout.contains("geheim"));
    let again = here.redrive("dead import captcha-dlq.json -p solver").expect(0).stdout;
    assert_eq!(again, "0 imported, 3 known already, 0 broken\n");
    let foretold = here.redrive("dead import captcha-dlq.json -p solver --dry-run --json").expect(0).json();
    assert_eq!((&foretold["known"], &foretold["new"]), (&json!(3), &json!(0)));
    assert_eq!(here.dead(), dead, "counted, not doubled");
    here.redrive("retry --pipeline solver -- cat").expect(0);
    assert_eq!(here.ledger("solver")["done"], 3);
    here.assert_sound();
}

#[test]
fn letters_without_a_time_are_not_news_twice() {
    let here = Sandbox::new();
    here.write("failed.jsonl", "{\"input\":{\"n\":1},\"message\":\"no\"}\n{\"input\":{\"n\":1},\"message\":\"no\"}\n");
    let ran = here.redrive("dead import failed.jsonl -p p").expect(0).stdout;
    assert_eq!(ran, "1 imported, 1 known already, 0 broken\n");
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(
        here.redrive("dead import failed.jsonl -p p").expect(0).stdout,
        "0 imported, 2 known already, 0 broken\n"
    );
    assert_eq!(here.dead()[0]["failures"].as_array().map(Vec::len), Some(1));
    here.assert_sound();
}

#[test]
fn fields_of_other_names_are_named() {
    let here = Sandbox::new();
    here.write(
        "failed.jsonl",
        "{\"task\":{\"n\":1},\"result\":{\"why\":\"no\"},\"when\":\"2025-11-15\",\"uid\":\"a-1\"}\n",
    );
    let line =
        "dead import failed.jsonl -p p --field message=result.why --field input=task --field time=when --field key=uid";
    here.redrive(line).expect(0);
    let letter = here.dead().remove(0);
    assert_eq!((&letter["message"], &letter["input"], &letter["key"]), (&json!("no"), &json!({"n": 1}), &json!("a-1")));
    here.redrive("dead import failed.jsonl -p p --field nonsense=x").expect(2).complains("expected message, time");
    here.redrive("dead import failed.jsonl --field message=x").expect(2).complains("--pipeline");
    let other = Sandbox::new();
    other.write("failed.jsonl", here.read("failed.jsonl"));
    other.redrive("dead import failed.jsonl").expect(4).complains("--pipeline NAME takes it in");
}

#[test]
fn hostile_files_are_refused_with_their_place_and_the_rest_is_taken() {
    let here = Sandbox::new();
    here.write("cut.json", "[{\"error\":\"a\",\"n\":1},\n{\"error\":\"b\",\"n\":2},\n{\"error\":");
    let ran = here.redrive("dead import cut.json -p p").expect(4).complains("cut.json:3: not a dead letter: EOF");
    assert_eq!(ran.stdout, "2 imported, 0 known already, 1 broken\n");
    let mut bytes = b"{\"error\":\"x\",\"n\":3}\n{\"error\":\"\xff\xfe\",\"n\":4}\n{\"n\":5}\n{\"error\":\"y\",\"timestamp\":\"soon\"}\nnonsense\n".to_vec();
    bytes.extend(format!("{{\"error\":\"{}\",\"n\":6}}\n", "x".repeat(3_000_000)).bytes());
    bytes.extend("[".repeat(1_000).bytes());
    here.write("odd.jsonl", bytes);
    let mut ran = here.redrive("dead import odd.jsonl -p p").expect(4);
    assert_eq!(ran.stdout, "2 imported, 0 known already, 5 broken\n");
    for said in [
        "odd.jsonl:2: not a dead letter: invalid unicode code point at column",
        "odd.jsonl:3: not a dead letter: it says nothing of a failure",
        "odd.jsonl:4: not a dead letter: timestamp is \"soon\", which is no time",
        "odd.jsonl:5: not a dead letter",
        "odd.jsonl:7: not a dead letter",
    ] {
        ran = ran.complains(said);
    }
    let longest = here.dead().iter().map(|letter| letter["message"].as_str().map_or(0, str::len)).max();
    assert!(longest.is_some_and(|longest| longest < 21_000), "{longest:?}");
    here.write("many.jsonl", "nonsense\n".repeat(100));
    let ran = here.redrive("dead import many.jsonl -p p").expect(4).complains("and 80 more lines");
    assert_eq!(ran.stderr.lines().count(), 21);
    here.assert_sound();
}

/// Passwords and cookies of an attempt do not go into the store, unless somebody needs them; what an error tells besides is shown.
#[test]
fn what_looks_secret_in_a_letter_is_masked_unless_it_is_needed() {
    let sandbox = Sandbox::new();
    let letter =
        json!({"url": "https://a.example/1", "password": "hunter2", "error": {"message": "no", "errno": -110}});
    sandbox.write("dlq.jsonl", format!("{letter}\n"));
    let said = "*** stands for what looked secret";
    sandbox.redrive("dead import dlq.jsonl -p masked --dry-run").expect(0).complains(said);
    sandbox.redrive("dead import dlq.jsonl -p masked").expect(0).complains(said);
    let kept = sandbox.redrive("dead import dlq.jsonl -p kept --keep-secrets").expect(0);
    assert!(!kept.stderr.contains(said), "{}", kept.stderr);
    let password = |pipeline: &str| {
        let letters = sandbox.dead();
        letters.iter().find(|letter| letter["pipeline"] == pipeline).expect("it is there")["input"]["password"].clone()
    };
    assert_eq!((password("masked"), password("kept")), (json!("***"), json!("hunter2")));
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    let shown = sandbox.run(&["dead", "show", &id]).expect(0).stdout;
    assert!(shown.contains("where it came from") && shown.contains("\"errno\": -110"), "{shown}");
}

crate::network::over_the_network! {
    kept: [what_cannot_be_is_refused_with_its_line_and_field],
    soak: [
        a_key_that_is_done_or_queued_here_is_not_worked_on_twice,
        payloads_that_did_not_come_along_are_missing,
        letters_without_a_time_are_not_news_twice,
        fields_of_other_names_are_named,
        hostile_files_are_refused_with_their_place_and_the_rest_is_taken,
        what_looks_secret_in_a_letter_is_masked_unless_it_is_needed,
    ],
}
