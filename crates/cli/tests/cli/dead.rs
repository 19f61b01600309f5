//! `redrive dead`: listing, filtering, paging, discarding, exporting and importing.

use serde_json::Value;

use crate::harness::Sandbox;

/// Twelve dead letters: odd ones are blocked, even ones time out.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let tasks: String = (0..12)
        .map(|n| format!("{{\"key\":\"k{n}\",\"n\":{n},\"url\":\"https://h{}.example/p{n}\"}}\n", n % 3))
        .collect();
    sandbox.write("tasks.jsonl", tasks);
    let script = r#"
read -r job
case "$job" in
  *'"n":'[13579],*|*'"n":11,'*) echo '{"failure":{"reason":"blocked","code":"challenge","message":"prove that you are human","http_status":403,"proxy":"eu-1"}}' ;;
  *) echo '{"failure":{"reason":"timeout","code":"ETIMEDOUT","message":"too slow"}}' ;;
esac
exit 1
"#;
    sandbox.write("fail.sh", script);
    sandbox.redrive("run tasks.jsonl --attempts 1 --pipeline shop -- sh fail.sh").expect(3);
    sandbox
}

fn list(sandbox: &Sandbox, filters: &str) -> Vec<Value> {
    sandbox.redrive(&format!("dead list --json {filters}")).expect(0).json_lines()
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..2_000).map(|n| format!("{{\"n\":{n},\"pad\":\"{}\"}}\n", "x".repeat(200))).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.write("fail.sh", "while read -r job; do echo '{\"failure\":{\"reason\":\"not_found\"}}'; done");
    sandbox.redrive("run tasks.jsonl --persistent -- sh fail.sh").expect(3);
    let script =
        format!("{} dead export | head -1 > /dev/null; echo ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_redrive"));
    let ran =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(sandbox.path("")).output().expect("ran");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "0\n", "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn filters_find_what_they_say() {
    let sandbox = sandbox();
    let count = |filters: &str| list(&sandbox, filters).len();
    assert_eq!(count(""), 12);
    assert_eq!(count("--pipeline shop"), 12);
    assert_eq!(count("--pipeline other"), 0);
    assert_eq!(count("--reason blocked"), 6);
    assert_eq!(count("--code ETIMEDOUT"), 6);
    assert_eq!(count("--target h1.example"), 4);
    assert_eq!(count("--reason blocked --target h1.example"), 2);
    assert_eq!(count("--gate review"), 6);
    assert_eq!(count("--text human"), 6);
    assert_eq!(count("--text k11"), 1);
    assert_eq!(count("--since 1h"), 12);
    assert_eq!(count("--until 1h"), 0);
    assert_eq!(count("--since 2020-01-01 --until 2021-01-01T00:00:00Z"), 0);
    let table = sandbox.redrive("dead list --reason blocked").expect(0).stdout;
    assert!(table.contains("prove that you are human") && table.lines().count() == 7, "{table}");
    assert_eq!(sandbox.redrive("dead list --pipeline none").expect(0).stdout, "no dead letters\n");
}

#[test]
fn pages_follow_each_other() {
    let sandbox = sandbox();
    let mut seen: Vec<String> = Vec::new();
    let mut cursor = String::new();
    for _ in 0..3 {
        let ran = sandbox.redrive(&format!("dead list --json --limit 5 {cursor}")).expect(0);
        seen.extend(ran.json_lines().iter().map(|letter| letter["id"].to_string()));
        match ran.stderr.split("--cursor ").nth(1) {
            Some(rest) => cursor = format!("--cursor {}", rest.split(',').next().expect("a cursor")),
            None => break,
        }
    }
    let all: Vec<String> = list(&sandbox, "--all").iter().map(|letter| letter["id"].to_string()).collect();
    assert_eq!(seen, all);
    assert_eq!(all.len(), 12);
}

#[test]
fn discarding_leaves_a_record() {
    let sandbox = sandbox();
    sandbox.run(&["dead", "discard", "--why", "x"]).expect(2).complains("say which dead letters");
    let asked = sandbox.run(&["dead", "discard", "--reason", "blocked", "--why", "closed shop"]).expect(2);
    assert!(asked.stdout.contains("6 dead letters would be discarded"), "{}", asked.stdout);
    assert_eq!(sandbox.ledger("shop")["dead"], 12);
    let done = sandbox.run(&["dead", "discard", "--reason", "blocked", "--why", "closed shop", "--yes"]).expect(0);
    assert_eq!(done.stdout, "6 discarded\n");
    let id = list(&sandbox, "--limit 1")[0]["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["dead", "discard", &id, "--why", "one more"]).expect(0);
    sandbox.run(&["dead", "discard", &id, "--why", "twice"]).expect(1).complains("no dead letter");
    let ledger = sandbox.ledger("shop");
    assert_eq!((&ledger["dead"], &ledger["discarded"]), (&5.into(), &7.into()));
    let shown = sandbox.run(&["job", "show", &id, "--json"]).expect(0).json();
    assert_eq!((&shown["state"], &shown["discard"]["why"]), (&"discarded".into(), &"one more".into()));
    sandbox.run(&["dead", "show", &id]).expect(1).complains("is discarded, not dead");
    sandbox.assert_sound();
}

#[test]
fn export_and_import_carry_everything() {
    let (from, to) = (sandbox(), Sandbox::new());
    from.redrive("dead export letters.jsonl").expect(0).complains("12 dead letters exported");
    to.write("letters.jsonl", from.read("letters.jsonl"));
    let first = to.redrive("dead import letters.jsonl").expect(0);
    assert_eq!(first.stdout, "12 imported, 0 known already, 0 broken\n");
    let second = to.redrive("dead import letters.jsonl").expect(0);
    assert_eq!(second.stdout, "0 imported, 12 known already, 0 broken\n");
    let there = to.redrive("dead export").expect(0).stdout;
    let origin = "\"origin\":{\"kind\":\"import\",\"over_network\":false},";
    assert_eq!(there.matches(origin).count(), 12, "they say that they were imported");
    assert!(sorted(&there.replace(origin, "")) == sorted(&from.read("letters.jsonl")), "and lose nothing");
    to.assert_sound();
    let partial = from.redrive("dead export --reason timeout").expect(0);
    assert_eq!(partial.json_lines().len(), 6);

    let broken = format!("nonsense\n{}", from.redrive("dead list --json --limit 1").expect(0).stdout);
    to.write("broken.jsonl", broken);
    let ran = to.redrive("dead import broken.jsonl").expect(4);
    ran.complains("broken.jsonl:1: not a dead letter")
        .complains("broken.jsonl:2: not a dead letter: it has no failures");
}

/// The letters in the order of their ids, without their numbers, which each store gives itself, and without where they came from.
fn sorted(text: &str) -> Vec<Value> {
    let mut letters: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a letter")).collect();
    for letter in &mut letters {
        let fields = letter.as_object_mut().expect("an object");
        let number = fields.remove("number");
        fields.remove("origin");
        assert!(number.is_some_and(|number| number.is_number()), "{letter}");
    }
    letters.sort_unstable_by_key(|letter| letter["id"].to_string());
    letters
}

crate::network::over_the_network! {
    kept: [discarding_leaves_a_record],
    soak: [filters_find_what_they_say, pages_follow_each_other],
    soak_but_work: [a_reader_that_has_seen_enough_is_no_error],
}
