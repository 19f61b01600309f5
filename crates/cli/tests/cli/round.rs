//! Rounds: the same tasks once more, each round with a ledger of its own.

use serde_json::json;

use crate::harness::Sandbox;

#[test]
fn every_morning_is_a_round_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", "https://a.example/1\nhttps://a.example/2\n");
    let script = "grep -q a.example/2 && exit 65; echo 1";
    sandbox.write("fetch.sh", script);
    for day in ["monday", "tuesday"] {
        let ran = sandbox.redrive(&format!("run urls.txt --round {day} -- sh fetch.sh")).expect(3);
        ran.complains("done: 1").complains("dead: 1");
        sandbox.redrive(&format!("run urls.txt --round {day} -- sh fetch.sh")).expect(3).complains("1 done before");
    }
    sandbox.write("urls.txt", "https://a.example/1\nhttps://a.example/2\nhttps://a.example/3\n");
    sandbox.redrive("push urls.txt --round tuesday").expect(0);
    let rounds = sandbox.redrive("round list --json").expect(0).json_lines();
    let told: Vec<_> =
        rounds.iter().map(|r| json!([r["round"], r["accepted"], r["done"], r["dead"], r["queued"]])).collect();
    assert_eq!(told, [json!(["tuesday", 3, 1, 1, 1]), json!(["monday", 2, 1, 1, 0])]);
    let listed = sandbox.redrive("round list --pipeline default --limit 1").expect(0).complains("there are more");
    assert!(listed.stdout.contains("tuesday") && !listed.stdout.contains("monday"), "{}", listed.stdout);
    let of: Vec<_> = sandbox.dead().iter().map(|letter| letter["round"].clone()).collect();
    assert!(of.contains(&json!("monday")) && of.contains(&json!("tuesday")), "letters say of which round they are");
    assert_eq!(sandbox.redrive("dead list --round monday --json").expect(0).json_lines().len(), 1);
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    let shown = sandbox.run(&["dead", "show", &id]).expect(0).stdout;
    assert!(shown.contains("round     tuesday"), "{shown}");
    sandbox.assert_sound();
}

/// Two who begin at the same time begin two rounds.
#[test]
fn rounds_that_begin_at_once_have_names_of_their_own() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", "https://a.example/1\n");
    let runs: Vec<_> = (0..4).map(|_| sandbox.spawn(&["push", "urls.txt", "--again"])).collect();
    for mut run in runs {
        assert!(run.wait().expect("waited").success());
    }
    let rounds = sandbox.redrive("round list --json").expect(0).json_lines();
    assert_eq!(
        rounds.iter().map(|round| round["accepted"].clone()).collect::<Vec<_>>(),
        [1, 1, 1, 1].map(|n| json!(n))
    );
}

#[test]
fn again_begins_a_round_and_says_its_name() {
    let sandbox = Sandbox::new();
    assert!(sandbox.redrive("round list").code == Some(1), "there is no store");
    sandbox.write("urls.txt", "https://a.example/1\n");
    sandbox.redrive("run urls.txt -- true").expect(0);
    assert!(sandbox.redrive("round list").expect(0).stdout.starts_with("no rounds: "));
    let told = sandbox.redrive("run urls.txt --again --dry-run -- true").expect(0).complains(" would begin; ");
    assert!(!told.stderr.contains(" begins"), "{}", told.stderr);
    for _ in 0..2 {
        let ran = sandbox.redrive("run urls.txt --again -- cat").expect(0).complains("done: 1");
        let result = &ran.json_lines()[0];
        assert!(result["round"].is_string() && result["result"]["round"] == result["round"], "{result}");
        ran.complains(" begins; to go on with it later: --round ");
    }
    let rounds = sandbox.redrive("round list --json").expect(0).json_lines();
    assert_eq!(rounds.len(), 2, "{rounds:?}");
    assert_ne!(rounds[0]["round"], rounds[1]["round"]);
    let day = |round: &serde_json::Value| round["round"].as_str().expect("a name")[..10].to_owned();
    // A round that is called by its day is somebody else's, who runs everything once a day.
    sandbox.redrive(&format!("run urls.txt --round {} -- true", day(&rounds[1]))).expect(0).complains("done: 1");
    let name = rounds[0]["round"].as_str().expect("a name");
    sandbox.redrive(&format!("run urls.txt --round {name} -- true")).expect(0).complains("1 done before; 0 new");
    sandbox.redrive("run urls.txt --round a/b -- true").expect(2).complains("1 to 64 letters");
    sandbox.redrive("run urls.txt --round a --again -- true").expect(2).complains("cannot be used with");
}

crate::network::over_the_network! {
    soak: [every_morning_is_a_round_of_its_own],
}
