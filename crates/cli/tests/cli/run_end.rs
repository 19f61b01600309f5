//! How the end of a run is told: by cause, to people and to programs.

use serde_json::json;

use crate::harness::{Sandbox, json_lines};

/// Twelve tasks: 1 to 8 die of one cause, 9 of another, the rest is done, 10 with a result.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let script = r#"read -r job
n=$(printf %s "$job" | sed 's/.*"n":\([0-9]*\).*/\1/')
[ -e fixed ] && { echo "$n"; exit 0; }
[ "$n" -le 8 ] && { echo "no price on page $n" >&2; exit 65; }
[ "$n" = 9 ] && { echo "{\"failure\":{\"reason\":\"blocked\",\"code\":\"403\",\"message\":\"go away\"}}"; exit 1; }
[ "$n" = 10 ] && echo '{"price":1}'
exit 0
"#;
    sandbox.write("price.sh", script);
    sandbox.write("tasks.jsonl", (1..=12).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox
}

#[test]
fn what_died_is_told_by_cause_with_an_example_and_the_next_command() {
    let ran = sandbox().redrive("run tasks.jsonl -- sh price.sh").expect(3);
    let ran = ran.complains("done: 3 (2 without a result)").complains("dead: 9");
    let ran = ran.complains("  8 × rejected_input: ").complains("  1 × blocked: ").complains("go away");
    let causes = ran.stderr.lines().filter(|line| line.contains("redrive cause show ")).count();
    assert_eq!(causes, 2, "{}", ran.stderr);
    assert!(ran.stderr.lines().count() <= 8, "{}", ran.stderr);
}

#[test]
fn only_the_worst_causes_are_told() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", (1..=9).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    let script = r#"n=$(sed 's/.*"n":\([0-9]*\).*/\1/'); echo "{\"failure\":{\"reason\":\"rejected_input\",\"code\":\"E$(printf %s "$n" | tr 0-9 a-j)\",\"message\":\"x\"}}"; exit 1"#;
    sandbox.write("fail.sh", script);
    let ran = sandbox.redrive("run tasks.jsonl -- sh fail.sh").expect(3);
    ran.complains("  and 4 more causes: redrive cause list --pipeline default");
}

#[test]
fn causes_that_differ_only_in_their_target_are_told_in_one_line() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.txt", ["a", "b", "c", "d"].map(|host| format!("https://{host}.example/\n")).concat());
    let script = r#"host=$(sed 's#.*https://\([a-z.]*\)/.*#\1#')
[ "$host" = d.example ] && { echo "KeyError: 'price'" >&2; exit 1; }
echo "requests.exceptions.ReadTimeout: no answer of $host" >&2; exit 1"#;
    sandbox.write("fetch.sh", script);
    let run = "run tasks.txt --pipeline shop --round r4 --attempts 1 --json --out results -- sh fetch.sh";
    let ran = sandbox.redrive(run).expect(3);
    assert_eq!(ran.json()["causes"].as_array().map(Vec::len), Some(4), "programs get each: {}", ran.stdout);
    let ran = sandbox.redrive(&run.replace("--json ", "").replace("r4", "r5")).expect(3);
    let lines: Vec<_> = ran.stderr.lines().filter(|line| line.contains(" × ")).collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(
        lines[0].starts_with("  3 × timeout: ") && lines[0].ends_with("no answer of …, on 3 targets"),
        "{lines:#?}"
    );
    let ran = ran.complains("e.g. ").complains("redrive cause list --pipeline shop");
    ran.complains("see them: redrive dead list --pipeline shop --round r5");
    sandbox.redrive("dead list --pipeline shop --round r5").expect(0);
}

#[test]
fn programs_get_one_document() {
    let sandbox = sandbox();
    sandbox.redrive("run tasks.jsonl --json -- sh price.sh").expect(2).complains("--out FILE");
    let ran = sandbox.redrive("run tasks.jsonl --json --out out.jsonl -- sh price.sh").expect(3);
    let told = ran.json();
    assert_eq!(
        (&told["done"], &told["died"], &told["new"], &told["exit"]),
        (&json!(3), &json!(9), &json!(12), &json!(3))
    );
    assert_eq!((&told["without_result"], &told["died_share"]), (&json!(2), &json!(0.75)));
    let causes: Vec<_> =
        told["causes"].as_array().expect("a list").iter().map(|c| (&c["count"], &c["reason"])).collect();
    assert_eq!(causes, [(&json!(8), &json!("rejected_input")), (&json!(1), &json!("blocked"))]);
    assert!(told["causes"][0]["example"]["input"]["n"].is_number(), "{told}");
    let again = sandbox.redrive("run tasks.jsonl --json --out out.jsonl -- sh price.sh").expect(3).json();
    assert_eq!((&again["known"]["done"], &again["known"]["dead"], &again["new"]), (&json!(3), &json!(9), &json!(0)));
}

/// Two runs at once share the tasks; each tells of those that it ran, and what the other did is said apart.
#[test]
fn a_run_tells_of_its_own_tasks() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", (1..=20).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    // No task ends before both runs have begun one. A third of them dies.
    let script = r#": > begun-$REDRIVE_WORKER; while [ "$(ls begun-* | wc -l)" -lt 2 ]; do sleep 0.05; done
n=$(sed 's/.*"n":\([0-9]*\).*/\1/'); [ $((n % 3)) = 0 ] && { echo "no $n" >&2; exit 65; }; echo "$n""#;
    sandbox.write("both.sh", script);
    let run = |out: &str| {
        let args = ["run", "tasks.jsonl", "-j", "1", "--json", "--out", out, "--", "sh", "both.sh"];
        sandbox.run(&args).json()
    };
    let told = std::thread::scope(|scope| {
        let other = scope.spawn(|| run("other.jsonl"));
        [run("one.jsonl"), other.join().expect("it ran")]
    });
    let number = |told: &serde_json::Value| told.as_i64().expect("a number");
    for (told, out) in told.iter().zip(["one.jsonl", "other.jsonl"]) {
        assert_eq!(number(&told["done"]), json_lines(&sandbox.read(out)).len() as i64, "{told}");
        let of_causes: i64 =
            told["causes"].as_array().expect("a list").iter().map(|cause| number(&cause["count"])).sum();
        assert_eq!(number(&told["died"]), of_causes, "{told}");
        assert_eq!(number(&told["exit"]), if of_causes > 0 { 3 } else { 0 }, "{told}");
        assert!(number(&told["done"]) + of_causes < 20, "{told}");
        let by_others = (number(&told["by_others"]["done"]), number(&told["by_others"]["died"]));
        assert_eq!(by_others, (14 - number(&told["done"]), 6 - of_causes), "{told}");
    }
    assert_eq!(number(&told[0]["done"]) + number(&told[1]["done"]), 14);
    assert_eq!(number(&told[0]["died"]) + number(&told[1]["died"]), 6);
}

#[test]
fn a_share_of_what_ended_may_die() {
    for (share, code) in [("75%", 0), ("0.74", 3), ("0%", 3), ("100%", 0)] {
        let sandbox = sandbox();
        sandbox
            .redrive(&format!("run tasks.jsonl --fail-over {share} -- sh price.sh"))
            .expect(code)
            .complains("75.0 % of what ended");
        sandbox.redrive(&format!("run tasks.jsonl --fail-over {share} -- sh price.sh")).expect(0);
    }
    sandbox().redrive("run tasks.jsonl --fail-over lots -- true").expect(2).complains("is not a share");
}

#[test]
fn what_died_before_is_replayed_if_asked_for() {
    let sandbox = sandbox();
    sandbox.redrive("run tasks.jsonl -- sh price.sh").expect(3).complains("dead: 9");
    sandbox.redrive("run tasks.jsonl -- sh price.sh").expect(3).complains("--retry-dead");
    sandbox.write("fixed", "");
    let ran = sandbox.redrive("run tasks.jsonl --retry-dead --bare -- sh price.sh").expect(0);
    assert_eq!(ran.json_lines().len(), 9);
    ran.complains("retried: 9 of 9 that died before, 9 recovered").complains("dead: 0");
    assert_eq!(sandbox.ledger("default")["recovered"], 9);
    sandbox.assert_sound();
}

#[test]
fn bare_results_are_only_what_came_of_each_task() {
    let sandbox = sandbox();
    let ran = sandbox.redrive("run tasks.jsonl --bare -- sh price.sh").expect(3);
    assert_eq!(ran.stdout, "{\"price\":1}\n");
    sandbox.redrive("run tasks.jsonl --again --bare --out out.jsonl -- sh price.sh").expect(3);
    assert_eq!(json_lines(&sandbox.read("out.jsonl")), [json!({"price": 1})]);
}

#[test]
fn a_result_may_be_required() {
    let sandbox = sandbox();
    let required = "run tasks.jsonl --require-result --attempts 1 -- sh price.sh";
    let ran = sandbox.redrive(required).expect(3).complains("done: 1 ").complains("dead: 11");
    ran.complains("2 × handler_error: ").complains("it succeeded without a result");
    let codes: Vec<_> = sandbox.dead().iter().map(|letter| letter["code"].clone()).collect();
    assert_eq!(codes.iter().filter(|code| **code == "no_result").count(), 2);
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"sh\", \"price.sh\"]\nresult = \"required\"\nkey = \"n\"\n[pipeline.p.retry]\nattempts = 1\n",
    );
    sandbox.redrive("run tasks.jsonl").expect(3).complains("done: 1 ").complains("dead: 11");
    assert_eq!(sandbox.dead().iter().filter(|letter| letter["pipeline"] == "p" && letter["key"] == "12").count(), 1);
}

/// Many letters go in growing steps, which stop by themselves if it is no better.
#[test]
fn what_died_before_and_still_fails_is_not_tried_to_the_last() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", (1..=30).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    let run = "run tasks.jsonl --attempts 1 -- false";
    sandbox.redrive(run).expect(3).complains("dead: 30");
    let ran = sandbox.redrive("run tasks.jsonl --attempts 1 --retry-dead -- false").expect(3);
    ran.complains("of 30 that died before, 0 recovered").complains("the rest waits: redrive replay show last");
    assert_eq!(sandbox.ledger("default")["dead"], 30);
    sandbox.redrive("replay show last").expect(0);
}

/// Rules end tasks, too: the end of a run counts what they discard, and what they take for a result.
#[test]
fn what_rules_discard_or_take_for_a_result_is_counted() {
    let sandbox = Sandbox::new();
    let rule = |message: &str, disposition: &str| {
        format!(
            "[[pipeline.p.rule]]\nmessage = \"{message}\"\nreason = \"not_found\"\ndisposition = \"{disposition}\"\n"
        )
    };
    let pipeline = "[pipeline.p]\ncommand = [\"sh\", \"fetch.sh\"]\nout = \"out.jsonl\"\n";
    sandbox.write("redrive.toml", [pipeline, &rule("page gone", "discard"), &rule("list empty", "done")].concat());
    let script =
        r#"case "$(cat)" in *:1}*) echo page gone >&2; exit 1;; *:2}*) echo list empty >&2; exit 1;; *) echo 3;; esac"#;
    sandbox.write("fetch.sh", script);
    sandbox.write("tasks.jsonl", (1..=3).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    let end = sandbox.redrive("run tasks.jsonl --json").expect(0).json();
    assert_eq!((&end["discarded"], &end["done"], &end["died"]), (&json!(1), &json!(2), &json!(0)), "{end}");
    let ledger = sandbox.ledger("p");
    assert_eq!((&ledger["discarded"], &ledger["done"]), (&json!(1), &json!(2)), "{ledger}");
}

crate::network::over_the_network! {
    kept: [programs_get_one_document, what_rules_discard_or_take_for_a_result_is_counted],
    soak: [
        what_died_before_and_still_fails_is_not_tried_to_the_last,
        what_died_is_told_by_cause_with_an_example_and_the_next_command,
        only_the_worst_causes_are_told,
        causes_that_differ_only_in_their_target_are_told_in_one_line,
        a_run_tells_of_its_own_tasks,
        a_share_of_what_ended_may_die,
        what_died_before_is_replayed_if_asked_for,
        bare_results_are_only_what_came_of_each_task,
        a_result_may_be_required,
    ],
}
