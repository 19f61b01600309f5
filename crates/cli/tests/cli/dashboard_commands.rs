//! "Copy as CLI": each command that a page offers is collected in a real browser, filled in like its form, and run on a copy of the
//! store; the form and the command come to the same.

use std::process::Command;

use crate::harness::{Ran, Sandbox, tools};
use crate::network::Serving;
use crate::served::local;

/// A script of the dashboard's tests, with what drives a browser.
pub fn browser(script: &str) -> Command {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/tests/browser/");
    let mut node = Command::new("node");
    node.arg(format!("{scripts}{script}")).env("TOOLS", tools().join("node/node_modules"));
    node
}

/// The same with nothing set that commands go by.
pub fn unset(node: &mut Command) -> &mut Command {
    let names = ["REDRIVE_STORE", "REDRIVE_CONFIG", "REDRIVE_LOG", "REDRIVE_SERVER", "REDRIVE_TOKEN"];
    names.iter().fold(node, |node, name| node.env_remove(name))
}

/// Tasks that die of two causes. None leaves a page behind: a command that was typed is not known to work from one.
const SCRIPT: &str = r#"read task
case "$task" in *'"n":1'[0-9]*) echo "no such page" >&2;; *) echo "boom 17" >&2;; esac
exit 1"#;

/// It takes longer than others: two stores are compared after every one of some fifty actions.
#[test]
fn what_a_page_offers_to_copy_does_what_its_form_does() {
    let (sandbox, copy) = (Sandbox::new(), Sandbox::new());
    let tasks: String = (1..=14).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("tasks.jsonl", &tasks);
    let run = ["run", "tasks.jsonl", "--pipeline", "shop", "--attempts", "1", "--", "sh", "-c", SCRIPT];
    let alerts = "[alerts.rules]\ndied_min = 2\ncause_letters = \"off\"\n[alerts.sink.team]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"cat >> told.txt\"]\n";
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
    // Both have a server that drives what is begun: what becomes of it is compared too.
    let (serving, beside) = (Serving::start(&sandbox, &[]), Serving::start(&copy, &[]));
    let mut node = browser("copied.mjs");
    node.arg(serving.url()).arg(copy.path("")).arg(env!("CARGO_BIN_EXE_redrive")).arg(sandbox.path(""));
    node.env("LOCAL", local(&serving.address));
    // It fails by itself if a page offers something that it did not run.
    Ran::of(unset(&mut node).env("XDG_STATE_HOME", copy.path("state")).output().expect("node runs")).expect(0);
    drop((serving, beside));
    sandbox.assert_sound();
    copy.assert_sound();
}
