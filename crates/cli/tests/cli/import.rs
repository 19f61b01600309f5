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
    let ran = ran.complains("its key a belongs to job").complains("which is done").complains("which is queued");
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
