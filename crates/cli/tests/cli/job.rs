//! `redrive job`: listing, showing and cancelling jobs in any state.

use crate::harness::Sandbox;

#[test]
fn jobs_are_listed_shown_and_cancelled() {
    let sandbox = Sandbox::new();
    let tasks: String =
        (0..6).map(|n| format!("{{\"key\":\"k{n}\",\"url\":\"https://h{}.example/\"}}\n", n % 2)).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("push tasks.jsonl").expect(0);
    let list = |filters: &str| sandbox.redrive(&format!("job list --json {filters}")).expect(0).json_lines();
    assert_eq!(list("").len(), 6);
    assert_eq!(list("--state queued --target h1.example").len(), 3);
    assert_eq!(list("--state done").len(), 0);
    assert_eq!(list("--text k5").len(), 1);
    assert_eq!(list("--until 1h").len(), 0);
    assert!(sandbox.redrive("job list").expect(0).stdout.contains("https://h0.example/"));

    let id = list("--text k5")[0]["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["job", "cancel", &id, "--why", "not needed"]).expect(0);
    sandbox.run(&["job", "cancel", &id, "--why", "twice"]).expect(1).complains("is discarded");
    assert_eq!(list("--state discarded").len(), 1);
    sandbox.redrive("work --drain -- true").expect(0);
    assert_eq!(list("--state done").len(), 5);
    let done = list("--state done")[0]["id"].as_str().expect("an id").to_owned();
    let shown = sandbox.run(&["job", "show", &done]).expect(0).stdout;
    assert!(shown.contains("done") && shown.contains("1 attempts"), "{shown}");
    sandbox.run(&["dead", "show", &done]).expect(1).complains("is done, not dead");
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [jobs_are_listed_shown_and_cancelled],
}
