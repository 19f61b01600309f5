//! What people did, as `redrive activity` lists it.

use serde_json::json;

use crate::harness::Sandbox;

#[test]
fn what_people_do_is_listed_with_who_did_it_and_to_what() {
    let sandbox = Sandbox::new();
    let empty = sandbox.redrive("activity");
    assert_ne!(empty.code, Some(0), "there is no store");
    sandbox.write("redrive.toml", "[pipeline.a]\ncommand = [\"false\"]\n[pipeline.b]\ncommand = [\"false\"]\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    for pipeline in ["a", "b"] {
        sandbox.redrive(&format!("run tasks.jsonl --attempts 1 --pipeline {pipeline}")).expect(3);
    }
    assert!(sandbox.redrive("activity").expect(0).stdout.contains("nobody did anything"));
    let causes = sandbox.redrive("cause list --pipeline a --json").expect(0).json_lines();
    let cause = causes[0]["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["cause", "note", &cause, "looking at it"]).expect(0);
    sandbox.redrive("replay start --pipeline a --detach").expect(0);
    sandbox.redrive("replay cancel last").expect(0);
    sandbox.run(&["dead", "discard", "--pipeline", "b", "--why", "not needed", "--yes"]).expect(0);
    let listed = sandbox.redrive("activity --json").expect(0).json_lines();
    let verbs: Vec<_> = listed.iter().map(|done| done["verb"].as_str().unwrap_or_default()).collect();
    assert_eq!(verbs, ["discard", "cancel", "start", "note"], "newest first");
    assert_eq!(listed[0]["detail"], json!({"letters": 2, "pipelines": ["b"], "why": "not needed"}));
    assert_eq!(listed[3]["object"], format!("cause {cause}"));
    let of = |args: &str| sandbox.redrive(&format!("activity --json {args}")).expect(0).json_lines().len();
    assert_eq!((of("--pipeline a"), of("--pipeline b"), of("--pipeline c")), (3, 1, 0));
    assert_eq!((of("--since 1h"), of("--since 2100-01-01"), of("--who nobody")), (4, 0, 0));
    assert_eq!((of("--verb note"), of("--verb mute"), of(&format!("--object {cause}"))), (1, 0, 1));
    let table = sandbox.redrive("activity --limit 1").expect(0);
    assert!(table.stdout.contains("not needed") && table.stderr.contains("--cursor"), "{table:?}");
    sandbox.redrive("activity --since soon").expect(2);
}
