//! Tries that are kept, and replays that take each letter from what suits it.

use serde_json::json;

use crate::harness::Sandbox;

/// Works from a saved page where it is given one; else it fails until the file `fixed` exists, and leaves a page if the task says so.
const PURE: &str = r#"
read -r job
if [ -n "$REDRIVE_SAVED" ]; then
  echo saved >> ran.log
  grep -q "$(cat rule)" "$REDRIVE_SAVED" && { echo '{"ok":true}'; exit 0; }
else
  echo anew >> ran.log
  case "$job" in *'"page":"'*) echo "$job" > "$REDRIVE_PAYLOAD" ;; esac
  [ -e fixed ] && { echo '{"ok":true}'; exit 0; }
fi
echo '{"reason":"schema_validation","message":"no price"}'
exit 65
"#;

const CONFIG: &str = "[pipeline.p]\ncommand = [\"sh\", \"pure.sh\"]\npure = true\nout = \"out.jsonl\"\n";

/// Five letters with a page, of which one is bad, and two without.
fn with_letters() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", CONFIG);
    sandbox.write("pure.sh", PURE);
    sandbox.write("rule", "nothing");
    let page = |n: u32| json!({"n": n, "page": if n == 5 { "bad" } else { "good" }});
    let tasks: String = (1..=5).map(page).chain([json!({"n": 6}), json!({"n": 7})]).map(|t| format!("{t}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.write("ran.log", "");
    sandbox
}

fn ran(sandbox: &Sandbox, how: &str) -> usize {
    sandbox.read("ran.log").lines().filter(|line| *line == how).count()
}

#[test]
fn each_letter_is_worked_on_from_what_suits_it() {
    let sandbox = with_letters();
    sandbox.write("rule", "page");
    sandbox.write("fixed", "");
    let planned = sandbox.redrive("replay plan --pipeline p").expect(0).stdout;
    assert!(planned.contains("7 of 7 letters would be replayed: 5 saved, 2 anew (2 requests)"), "{planned}");
    let plan = sandbox.redrive("replay plan --pipeline p --json").expect(0).json();
    assert_eq!((&plan["mode"], &plan["saved"], &plan["anew"]), (&json!("suited"), &json!(5), &json!(2)));
    let saved = sandbox.redrive("replay plan --pipeline p --saved --json").expect(0).json();
    assert_eq!((&saved["included"], &saved["excluded"]["payload_gone"]), (&json!(5), &json!(2)));
    let anew = sandbox.redrive("replay plan --pipeline p --refetch").expect(0).stdout;
    assert!(anew.contains("everything anew (7 requests)"), "{anew}");
    let said = sandbox.redrive("replay start --pipeline p").expect(0).stdout;
    assert!(said.contains("7 letters, 5 saved, 2 anew (2 requests)"), "{said}");
    assert_eq!((ran(&sandbox, "saved"), ran(&sandbox, "anew")), (5, 2));
    let letters = sandbox.redrive("replay show last --letters --json").expect(0).json_lines();
    assert_eq!(letters.iter().filter(|letter| letter["saved"] == true).count(), 5);
    sandbox.assert_sound();
}

#[test]
fn what_a_try_recovered_is_replayed_and_nothing_else() {
    let sandbox = with_letters();
    let recoverable = "replay start --pipeline p --recoverable";
    sandbox.redrive(recoverable).expect(1).complains("not tried in the last 24 hours: `redrive replay try`");
    sandbox.redrive("replay try --show").expect(1).complains("not tried");
    sandbox.write("rule", "good");
    let before = (sandbox.redrive("dead export").expect(0).stdout, sandbox.ledger("p"));
    let tried = sandbox.redrive("replay try --pipeline p --json").expect(3).json();
    assert_eq!((&tried["tried"], &tried["recovered"]), (&json!(5), &json!(4)));
    assert_eq!((sandbox.redrive("dead export").expect(0).stdout, sandbox.ledger("p")), before, "it changed nothing");
    let shown = sandbox.redrive("replay try --show --json").expect(0).json();
    assert_eq!((&shown["id"], &shown["outcome"]["recovered"]), (&tried["id"], &json!(4)));
    sandbox.redrive("replay start --reason schema_validation --recoverable").expect(1).complains("not tried");
    sandbox.redrive(&format!("{recoverable} --set n=1")).expect(1).complains("not tried");
    let said = sandbox.redrive(recoverable).expect(0).stdout;
    assert!(said.contains("4 letters, from their saved payloads"), "{said}");
    assert!(said.contains("3 left out: the try did not recover them"), "{said}");
    assert_eq!(sandbox.ledger("p")["dead"], 3);
    let said = sandbox.redrive(recoverable).expect(1).stdout;
    assert!(said.contains("3  the try did not recover them"), "{said}");
    sandbox.assert_sound();
}

#[test]
fn more_attempts_than_there_may_be_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", format!("{CONFIG}[pipeline.p.retry]\nattempts = 9\nattempts_total = 8\n"));
    sandbox.write("tasks.jsonl", "{}\n");
    let said = "retry.attempts (9) is more than retry.attempts_total (8)";
    sandbox.redrive("run tasks.jsonl").expect(2).complains(said);
}

/// A letter that would hand on to a pipeline that is not named would fail, so a try says so.
#[test]
fn a_try_knows_what_a_letter_may_hand_on() {
    let sandbox = with_letters();
    let hands_on = r#"read -r job; echo '{"enqueue": [{"pipeline": "q", "input": {"n": 1}}]}'"#;
    sandbox.write("pure.sh", hands_on);
    let tried = sandbox.redrive("replay try --pipeline p").expect(3).stdout;
    assert!(tried.contains("0 of 5 would recover") && tried.contains("hand_on of pipeline p"), "{tried}");
    let named = CONFIG.replace("pure = true", "pure = true\nhand_on = [\"q\"]") + "[pipeline.q]\ncommand = [\"cat\"]\n";
    sandbox.write("redrive.toml", named);
    let tried = sandbox.redrive("replay try --pipeline p").expect(0).stdout;
    assert!(tried.contains("5 of 5 would recover"), "{tried}");
    assert!(sandbox.ledger("q").is_null(), "nothing was handed on");
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [what_a_try_recovered_is_replayed_and_nothing_else],
    soak: [each_letter_is_worked_on_from_what_suits_it],
}
