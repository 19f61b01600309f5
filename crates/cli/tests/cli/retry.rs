//! `redrive retry`: one letter, a few, or a cause, now.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Ran, Sandbox, json_lines};
use crate::served::{Served, answered, free_address};

/// Tasks that die unless their `ok` is true; the handler says what it was given.
fn sandbox(tasks: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    let script = "read -r job\ncase \"$job\" in *'\"ok\":true'*) printf '%s' \"$job\" | sed 's/.*\"input\"://; s/},\".*/}/' ;; *) echo 'the shop is closed' >&2; exit 65 ;; esac\n";
    sandbox.write("shop.sh", script);
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"sh\", \"shop.sh\"]\n");
    let task = |n: u32| format!("{}\n", json!({"n": n, "ok": false}));
    sandbox.write("tasks.jsonl", (0..tasks).map(task).collect::<String>());
    sandbox.redrive("run tasks.jsonl").expect(if tasks > 0 { 3 } else { 0 });
    sandbox
}

fn number(letter: &Value) -> String {
    letter["number"].as_i64().expect("a number").to_string()
}

fn edited(sandbox: &Sandbox, letter: &str, editor: &str) -> (Option<i32>, String, String) {
    let mut command: Command = sandbox.command();
    command.args(["retry", letter, "--edit"]).env("EDITOR", editor).env_remove("VISUAL");
    let output = command.output().expect("redrive starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn one_letter_goes_by_its_number_and_says_what_became_of_it() {
    let sandbox = sandbox(3);
    let letter = number(&sandbox.dead()[0]);
    let again = sandbox.run(&["retry", &letter]).expect(3).complains(&format!("{letter}  died again: "));
    assert!(again.stderr.contains("the shop is closed"), "{}", again.stderr);
    let done =
        sandbox.run(&["retry", &letter, "--set", "ok=true"]).expect(0).complains(&format!("{letter}  recovered"));
    assert!(done.stdout.contains("\"ok\":true"), "the answer is printed: {}", done.stdout);
    assert_eq!(sandbox.ledger("shop")["done"], 1);
    sandbox.run(&["retry", &letter]).expect(1).complains("is done, not dead");
    sandbox.redrive("retry 999999").expect(1).complains("no task has the number 999999");
    sandbox.redrive("retry zzz").expect(2).complains("is not a task");
    sandbox.redrive("retry").expect(2).complains("say which dead letters");
    sandbox.assert_sound();
}

#[test]
fn each_letter_that_was_named_and_not_tried_is_told() {
    let sandbox = sandbox(3);
    let numbers: Vec<_> = sandbox.dead().iter().map(number).collect();
    sandbox.run(&["retry", &numbers[0], "--set", "ok=true"]).expect(0);
    let some = sandbox.run(&["retry", &numbers[0], &numbers[1], "--set", "ok=true"]).expect(1);
    some.complains("is done, not dead").complains(&format!("{}  recovered", numbers[1]));
    let none = sandbox.run(&["retry", &numbers[0], &numbers[1]]).expect(1);
    assert_eq!(none.stderr.matches("is done, not dead").count(), 2, "{}", none.stderr);
}

/// A letter that may not be replayed is not passed over in silence beside others that may.
#[test]
fn a_letter_that_was_named_and_left_out_by_its_gate_is_told_with_the_exit_code() {
    let sandbox = sandbox(2);
    let numbers: Vec<_> = sandbox.dead().iter().map(number).collect();
    let gate =
        || sandbox.dead().iter().find(|letter| number(letter) == numbers[0]).expect("it is dead")["gate"].clone();
    while gate() != "never" {
        sandbox.run(&["replay", "start", &numbers[0], "--refail-max", "100%"]).expect(3);
    }
    sandbox.redrive("retry --pipeline shop --set n=7").expect(3).complains("1 left out: ");
    let both = sandbox.run(&["retry", &numbers[0], &numbers[1], "--set", "ok=true"]).expect(1);
    both.complains("1 left out: ").complains(&format!("{}  recovered", numbers[1]));
}

/// What was meant and not tried is no success: changes that do not fit a letter, or a replay that somebody cancelled.
#[test]
fn what_was_not_sent_or_was_cancelled_is_told_with_the_exit_code() {
    let sandbox = sandbox(0);
    sandbox.write("tasks.jsonl", "{\"a\": {\"n\": 1}, \"ok\": false}\n{\"a\": \"text\", \"ok\": false}\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    let edited = sandbox.redrive("retry --pipeline shop --set /a/n=2 --set ok=true").expect(1);
    edited.complains("  recovered").complains("  not sent: ").complains("--set does not fit: 1");
    assert_eq!((sandbox.ledger("shop")["done"].clone(), sandbox.dead().len()), (json!(1), 1));
    sandbox.redrive("replay start --pipeline shop --detach").expect(0);
    sandbox.redrive("replay cancel last").expect(0);
    sandbox.redrive("replay watch last").expect(1).complains("cancelled");
    sandbox.assert_sound();
}

#[test]
fn an_id_is_known_by_its_end() {
    let sandbox = sandbox(1);
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    let end = &id[id.len() - 12..];
    // An end of digits alone would be a number.
    let end = if end.contains(|c: char| c.is_ascii_alphabetic()) { end } else { &id[id.len() - 20..] };
    sandbox.run(&["dead", "show", end]).expect(0);
    sandbox.run(&["job", "show", end]).expect(0);
    sandbox.run(&["retry", end, "--set", "ok=true"]).expect(0);
    sandbox.redrive("dead show ffff-ffffffffffff").expect(1).complains("no task's id ends with ffffffffffffffff");
}

#[test]
fn an_older_number_never_means_another_letter() {
    let sandbox = sandbox(2);
    let numbers: Vec<_> = sandbox.dead().iter().map(number).collect();
    sandbox.redrive("dead discard --pipeline shop --why gone --yes").expect(0);
    sandbox.write("more.jsonl", "{\"n\": 8}\n{\"n\": 9}\n");
    sandbox.redrive("run more.jsonl").expect(3);
    for old in &numbers {
        sandbox.run(&["dead", "show", old]).expect(1).complains("is discarded, not dead");
        sandbox.run(&["retry", old]).expect(1);
    }
    assert!(sandbox.dead().iter().all(|letter| !numbers.contains(&number(letter))));
}

#[test]
fn an_input_is_changed_in_the_editor() {
    let sandbox = sandbox(2);
    let letters = sandbox.dead();
    let (first, second) = (number(&letters[0]), number(&letters[1]));
    sandbox.write("editor.sh", "sed -i 's/false/true/; /\"n\"/d' \"$1\"\n");
    let (code, stdout, stderr) = edited(&sandbox, &first, "sh editor.sh");
    assert_eq!(
        (code, stdout.contains("\"ok\":true") && !stdout.contains("\"n\"")),
        (Some(0), true),
        "{stdout}{stderr}"
    );

    let (code, _, stderr) = edited(&sandbox, &second, "true");
    assert!(code == Some(0) && stderr.contains("nothing is retried"), "{stderr}");
    let (code, _, stderr) = edited(&sandbox, &second, "false");
    assert!(code == Some(1) && stderr.contains("false ended with") && !stderr.contains("stays"), "{stderr}");
    sandbox.write("crash.sh", "printf '{\"ok\": tru' > \"$1\"; exit 3\n");
    let (code, _, stderr) = edited(&sandbox, &second, "sh crash.sh");
    assert!(code == Some(1) && stderr.contains("ended with") && stderr.contains("what you typed stays in"), "{stderr}");
    let kept = stderr.split_whitespace().find(|word| word.contains("redrive-input-")).expect("a path");
    let kept = kept.trim_end_matches([':', ',', ';']);
    assert_eq!(std::fs::read_to_string(kept).expect("it stays"), "{\"ok\": tru");
    std::fs::remove_file(kept).expect("removed");
    sandbox.write("spoil.sh", "printf '{\"ok\": true,\\n  \"n\" 1}' > \"$1\"\n");
    let (code, _, stderr) = edited(&sandbox, &second, "sh spoil.sh");
    assert!(
        code == Some(2) && stderr.contains("line 2 column 7") && stderr.contains("the file stays there"),
        "{stderr}"
    );
    let kept = stderr.split_whitespace().find(|word| word.contains("redrive-input-")).expect("a path");
    let kept = kept.trim_end_matches(':');
    assert!(std::fs::read_to_string(kept).expect("it stays").contains("\"n\" 1"));
    std::fs::remove_file(kept).expect("removed");
    assert_eq!(sandbox.ledger("shop")["dead"], 1);
    sandbox.redrive("retry --pipeline shop --edit").expect(2).complains("name one");
}

#[test]
fn a_handful_goes_at_once_and_more_in_steps() {
    let sandbox = sandbox(5);
    let cause = sandbox.redrive("cause list --json").expect(0).json_lines().remove(0);
    let cause = cause["id"].as_str().expect("an id");
    let ran = sandbox.run(&["retry", "--cause", cause]).expect(3);
    assert_eq!(ran.stderr.matches("died again").count(), 5, "none is held back because others failed: {}", ran.stderr);
    let replay = sandbox.redrive("replay show last --json").expect(0).json();
    assert_eq!((&replay["pacing"]["ramp"], &replay["state"]), (&json!([]), &json!("done")));
    let id = replay["id"].as_str().expect("an id");
    let end = &id[id.len() - 8..];
    assert_eq!(sandbox.run(&["replay", "show", end, "--json"]).expect(0).json()["id"], id);
    sandbox.redrive("replay show ffffffff").expect(1).complains("no replay's id ends with ffffffff");

    let many = self::sandbox(21);
    let ran = many.redrive("retry --pipeline shop").expect(6);
    assert!(ran.stdout.contains("21 letters") && ran.stderr.contains("paused:"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn what_failed_permanently_needs_force_but_no_speech() {
    let sandbox = sandbox(1);
    let letter = number(&sandbox.dead()[0]);
    for _ in 0..6 {
        if sandbox.dead()[0]["gate"] == "never" {
            break;
        }
        sandbox.redrive("retry --pipeline shop").expect(3);
    }
    assert_eq!(sandbox.dead()[0]["gate"], "never");
    let refused = sandbox.run(&["retry", &letter]).expect(1);
    assert!(refused.stdout.contains("--force"), "{}", refused.stdout);
    sandbox.run(&["retry", &letter, "--force", "--set", "ok=true"]).expect(0);
}

#[test]
fn a_letter_shows_its_payload_and_how_to_see_it() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("fail.sh", "printf '<html>no price</html>' > \"$REDRIVE_PAYLOAD\"; echo broken >&2; exit 65");
    sandbox.redrive("run tasks.jsonl -- sh fail.sh").expect(3);
    let letter = sandbox.dead().remove(0);
    let shown = sandbox.run(&["dead", "show", &number(&letter)]).expect(0).stdout;
    let hash = letter["payload"].as_str().expect("a payload");
    assert!(shown.contains(hash) && shown.contains("21 bytes"), "{shown}");
    let command = shown.split("see it: redrive ").nth(1).and_then(|rest| rest.lines().next()).expect("a command");
    assert_eq!(sandbox.redrive(command).expect(0).stdout, "<html>no price</html>");
}

#[test]
fn what_was_masked_on_its_way_in_is_supplied_with_set() {
    let sandbox = sandbox(0);
    let server = Served::start(&sandbox, "127.0.0.1:0", &[]);
    let input = json!({ "n": 1, "ok": true, "token": "hunter2hunter2" });
    let letter = json!({ "pipeline": "shop", "input": input, "message": "no" });
    answered(&server.address, "", "POST /letters", &letter);
    server.stop();
    let dead = sandbox.dead().remove(0);
    assert!(!dead.to_string().contains("hunter2"), "{dead}");
    let letter = number(&dead);
    let shown = sandbox.run(&["dead", "show", &letter]).expect(0);
    assert!(shown.stdout.contains("its input lacks token") && shown.stdout.contains("--set"), "{}", shown.stdout);
    for more in [&[][..], &["--set", "n=2"], &["--force"]] {
        let refused = sandbox.run(&[&["retry", &letter], more].concat()).expect(1);
        assert!(refused.stdout.contains("--set supplies what some lack"), "{more:?}: {}", refused.stdout);
    }
    let done = sandbox.run(&["retry", &letter, "--set", "token=another"]).expect(0);
    assert!(done.stdout.contains("\"token\":\"another\""), "{}", done.stdout);
    assert_eq!(sandbox.ledger("shop")["done"], 1);
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [one_letter_goes_by_its_number_and_says_what_became_of_it],
    soak: [
        each_letter_that_was_named_and_not_tried_is_told,
        a_letter_that_was_named_and_left_out_by_its_gate_is_told_with_the_exit_code,
        what_was_not_sent_or_was_cancelled_is_told_with_the_exit_code,
        an_id_is_known_by_its_end,
        an_older_number_never_means_another_letter,
        an_input_is_changed_in_the_editor,
        a_handful_goes_at_once_and_more_in_steps,
        what_failed_permanently_needs_force_but_no_speech,
        a_letter_shows_its_payload_and_how_to_see_it,
    ],
}

/// A task that died of a script that is mended now, whose results go to `results/out.jsonl`.
fn with_out(more: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write("shop.sh", "exit 65");
    std::fs::create_dir(sandbox.path("results")).expect("made");
    sandbox.redrive(&format!("run tasks.jsonl --out results/out.jsonl {more}-- sh shop.sh")).expect(3);
    sandbox.write("shop.sh", "echo ran >> ran.log; echo 3");
    sandbox
}

fn results(sandbox: &Sandbox) -> Vec<Value> {
    json_lines(&sandbox.read("results/out.jsonl"))
}

#[test]
fn results_go_where_those_of_the_run_went() {
    let sandbox = with_out("");
    let letters: Vec<String> = sandbox.dead().iter().map(number).collect();
    let retried = sandbox.run(&["retry", &letters[0]]).expect(0).complains("results: results/out.jsonl");
    assert_eq!(retried.stdout, "", "they are not printed");
    assert_eq!(results(&sandbox).iter().map(|line| line["result"].clone()).collect::<Vec<_>>(), [json!(3)]);
    sandbox.redrive("replay start --pipeline default --force --why mended").expect(0);
    assert_eq!(results(&sandbox).len(), 2);
}

#[test]
fn form_of_results_is_remembered_with_their_file() {
    let sandbox = with_out("--bare ");
    sandbox.redrive("retry --pipeline default --force").expect(0).complains("results: results/out.jsonl");
    assert_eq!(results(&sandbox), [json!(3), json!(3)]);
}

#[test]
fn nothing_is_attempted_if_the_file_of_results_cannot_be_opened() {
    let sandbox = with_out("");
    std::fs::remove_dir_all(sandbox.path("results")).expect("removed");
    let refused = sandbox.redrive("retry --pipeline default --force").expect(1);
    assert!(
        refused.stderr.contains("results/out.jsonl") && refused.stderr.contains("--out FILE"),
        "{}",
        refused.stderr
    );
    assert!(!sandbox.path("ran.log").exists(), "nothing ran");
    sandbox.redrive("retry --pipeline default --force --out other.jsonl").expect(0);
    assert_eq!(json_lines(&sandbox.read("other.jsonl")).len(), 2);
}

/// Whoever can write a store could name any file in it.
#[test]
fn file_of_results_that_the_store_alone_names_is_not_written() {
    let sandbox = with_out("");
    std::fs::remove_dir_all(sandbox.path("state")).expect("another user");
    let refused = sandbox.redrive("retry --pipeline default --force -- sh shop.sh").expect(2);
    assert!(
        refused.stderr.contains("results/out.jsonl") && refused.stderr.contains("--out FILE"),
        "{}",
        refused.stderr
    );
    assert_eq!((results(&sandbox).len(), sandbox.path("ran.log").exists()), (0, false));
}

#[test]
fn worker_writes_results_where_those_of_the_run_went() {
    let sandbox = sandbox(0);
    sandbox.write("tasks.jsonl", "{\"n\":1,\"ok\":true}\n");
    sandbox.redrive("run tasks.jsonl --out out.jsonl").expect(0);
    sandbox.write("more.jsonl", "{\"n\":2,\"ok\":true}\n");
    sandbox.redrive("push more.jsonl").expect(0);
    let worked = sandbox.redrive("work --drain").expect(0).complains("results: out.jsonl");
    assert_eq!((worked.stdout.as_str(), json_lines(&sandbox.read("out.jsonl")).len()), ("", 2));
}

/// A worker with a definition that is new has no file of its own, but the tasks of its pipeline had one.
#[test]
fn results_are_not_only_printed_if_the_pipeline_had_a_file() {
    let sandbox = sandbox(0);
    sandbox.write("tasks.jsonl", "{\"n\":1,\"ok\":true}\n");
    sandbox.redrive("run tasks.jsonl --out out.jsonl").expect(0);
    sandbox.write("redrive.toml", format!("{}timeout = \"7s\"\n", sandbox.read("redrive.toml")));
    sandbox.write("more.jsonl", "{\"n\":2,\"ok\":true}\n");
    sandbox.redrive("push more.jsonl").expect(0);
    let refused = sandbox.redrive("work --drain").expect(2).complains("out.jsonl").complains("--out FILE");
    assert_eq!((refused.stdout.as_str(), sandbox.ledger("shop")["queued"].as_i64()), ("", Some(1)));
    sandbox.redrive("work --drain --out out.jsonl").expect(0);
    assert_eq!(json_lines(&sandbox.read("out.jsonl")).len(), 2);
}

#[test]
fn results_of_a_run_go_on_to_the_file_if_the_store_does_not_keep_them() {
    let sandbox = sandbox(0);
    sandbox.write("redrive.toml", format!("{}keep_results = \"off\"\n", sandbox.read("redrive.toml")));
    let run = |n: u32, more: &str| {
        sandbox.write("tasks.jsonl", format!("{{\"n\":{n},\"ok\":true}}\n"));
        sandbox.redrive(&format!("run tasks.jsonl {more}"))
    };
    assert_eq!(json_lines(&run(1, "").expect(0).stdout).len(), 1, "it had no file so far");
    run(2, "--out out.jsonl").expect(0);
    assert_eq!(run(3, "").expect(0).complains("results: out.jsonl").stdout, "");
    assert_eq!(json_lines(&sandbox.read("out.jsonl")).len(), 2);
    sandbox.write("redrive.toml", format!("{}timeout = \"7s\"\n", sandbox.read("redrive.toml")));
    assert_eq!(run(4, "").expect(2).complains("out.jsonl").complains("--out FILE").stdout, "");
    sandbox.write("redrive.toml", sandbox.read("redrive.toml").replace("\"off\"", "\"1h\""));
    assert_eq!(json_lines(&run(4, "").expect(0).stdout).len(), 1, "the store keeps it");
}

#[test]
fn results_over_a_server_are_not_only_printed_if_the_pipeline_had_a_file() {
    let sandbox = Sandbox::new();
    let address = free_address();
    let _server = Served::start(&sandbox, &address, &[]);
    let elsewhere = Sandbox::new();
    let work = |n: u32, args: &[&str]| {
        sandbox.write("tasks.jsonl", format!("{{\"n\":{n}}}\n"));
        sandbox.run(&["push", "tasks.jsonl", "--pipeline", "shop"]).expect(0);
        let mut command = elsewhere.command();
        command.args([&["work", "--drain", "--pipeline", "shop"], args].concat());
        let server = format!("http://{address}");
        command.env("REDRIVE_SERVER", server).env("XDG_STATE_HOME", sandbox.path("state"));
        let output = command.output().expect("started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    };
    assert_eq!(json_lines(&work(1, &["--", "cat"]).expect(0).stdout).len(), 1, "it had no file so far");
    work(2, &["--out", "out.jsonl", "--", "cat"]).expect(0);
    work(3, &["--", "cat"]).expect(0).complains("results: out.jsonl");
    let refused = work(4, &["--", "sh", "-c", "cat"]).expect(2);
    assert_eq!(refused.complains("out.jsonl").complains("--out FILE").stdout, "");
    assert_eq!(sandbox.ledger("shop")["queued"], 1, "nothing was attempted");
    work(5, &["--out", "out.jsonl", "--", "sh", "-c", "cat"]).expect(0);
    assert_eq!(json_lines(&elsewhere.read("out.jsonl")).len(), 4);
}
