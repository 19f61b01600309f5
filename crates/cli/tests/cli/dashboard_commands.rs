//! "Copy as CLI": each command that a page offers is collected in a real browser, filled in like its form, and run on a copy of the
//! store; the form and the command come to the same.

use std::process::Command;

use crate::harness::{Ran, Sandbox, tools};
use crate::network::Serving;

/// A script of the dashboard's tests, with what drives a browser.
pub fn browser(script: &str) -> Command {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/browser/");
    let mut node = Command::new("node");
    node.arg(format!("{scripts}{script}")).env("TOOLS", tools().join("node/node_modules"));
    node
}

/// It takes longer than others: two stores are compared after every one of some twenty actions.
#[test]
fn what_a_page_offers_to_copy_does_what_its_form_does() {
    let (sandbox, copy) = (Sandbox::new(), Sandbox::new());
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n");
    let script =
        r#"read task; case "$task" in *'"n":4'*) echo "no such page" >&2;; *) echo "boom 17" >&2;; esac; exit 1"#;
    let run = ["run", "tasks.jsonl", "--pipeline", "shop", "--attempts", "1", "--", "sh", "-c", script];
    let alerts = "[alerts.rules]\ndied_min = 2\n[alerts.sink.team]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> told.txt\"]\n";
    for folder in [&sandbox, &copy] {
        folder.write("redrive.toml", alerts);
        folder.write("told.txt", "");
    }
    sandbox.run(&run).expect(3);
    sandbox.redrive("alert check").expect(3);
    let copied =
        Command::new("cp").arg("-r").arg(sandbox.path(".redrive")).arg(copy.path("")).status().expect("copied");
    assert!(copied.success());
    // Whoever ran a command may have it run again: that is kept beside the store.
    let known = Command::new("cp").arg("-r").arg(sandbox.path("state")).arg(copy.path("")).status().expect("copied");
    assert!(known.success());
    let serving = Serving::start(&sandbox, &[]);
    let mut node = browser("copied.mjs");
    node.arg(serving.url()).arg(copy.path("")).arg(env!("CARGO_BIN_EXE_redrive")).arg(sandbox.path(""));
    for name in ["REDRIVE_STORE", "REDRIVE_CONFIG", "REDRIVE_LOG", "REDRIVE_SERVER", "REDRIVE_TOKEN"] {
        node.env_remove(name);
    }
    let ran = Ran::of(node.env("XDG_STATE_HOME", copy.path("state")).output().expect("node runs"));
    let ran = ran.expect(0);
    assert!(ran.stdout.lines().count() >= 34, "some actions were not tried:\n{}", ran.stdout);
    drop(serving);
    sandbox.assert_sound();
    copy.assert_sound();
}
