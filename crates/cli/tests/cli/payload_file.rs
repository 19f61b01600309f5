//! What a command may do to the file named in `REDRIVE_PAYLOAD`: anything, and the worker neither waits for it nor follows it.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::harness::Sandbox;

/// What each task does to its payload file, and what is said about it; nothing means that the file is kept.
const DEEDS: [(&str, &str, Option<&str>); 12] = [
    ("fifo", "mkfifo \"$F\"", Some("a FIFO")),
    (
        "socket",
        "cd \"$D\" && python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \"${F##*/}\"",
        Some("a socket"),
    ),
    ("folder", "mkdir \"$F\"", Some("a folder")),
    ("symlink", "ln -s /etc/passwd \"$F\"", Some("a symlink")),
    ("symlink-to-fifo", "mkfifo f; ln -s \"$PWD/f\" \"$F\"", Some("a symlink")),
    ("symlink-within", "echo x > \"$D/own\"; ln -s own \"$F\"; rm \"$D/own\"", Some("a symlink")),
    ("mount", "touch \"$F\" mounted; mount --bind mounted \"$F\"", Some("something is mounted")),
    ("unmount", "umount \"$D\"/*.payload && rm \"$D\"/*.payload && echo fine > \"$F\"", None),
    ("hard-link", "echo linked > linked; ln linked \"$F\"", None),
    ("sparse", "truncate -s 4T \"$F\"", None),
    (
        "growing",
        "(setsid sh -c 'for n in $(seq 2000); do head -c 4096 /dev/zero; sleep 0.01; done >> \"$F\"' >&- 2>&- &) ; \
         while [ ! -s \"$F\" ]; do sleep 0.01; done",
        None,
    ),
    ("honest", "echo honest > \"$F\"", None),
];

/// Sources the script of the task's name.
const HANDLER: &str = r#"
F=$REDRIVE_PAYLOAD D=$(dirname "$REDRIVE_PAYLOAD"); export F
. "./deeds/$(sed 's/.*"do":"\([a-z-]*\)".*/\1/')"
exit 65
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("tmp")).expect("made");
    fs::create_dir(sandbox.path("deeds")).expect("made");
    DEEDS.iter().for_each(|(name, deed, _)| drop(sandbox.write(&format!("deeds/{name}"), deed)));
    sandbox.write("handler.sh", HANDLER);
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"handler.sh\"]\npayload_max = \"1MiB\"\n");
    sandbox
}

/// Runs tasks of these names, one after the other; gives their dead letters by name. It is over in five minutes, or is ended.
fn run(sandbox: &Sandbox, names: &[&str]) -> HashMap<String, Value> {
    sandbox.write("tasks.jsonl", names.iter().map(|name| format!("{{\"do\":\"{name}\"}}\n")).collect::<String>());
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "300", env!("CARGO_BIN_EXE_redrive"), "run", "tasks.jsonl", "-j", "1"]);
    let status = command.current_dir(sandbox.path("")).env("TMPDIR", sandbox.path("tmp")).status().expect("started");
    assert_eq!(status.code(), Some(3), "the worker goes on whatever its commands leave");
    let named = |letter: Value| (letter["input"]["do"].as_str().expect("a name").to_owned(), letter);
    sandbox.dead().into_iter().map(named).collect()
}

#[test]
fn what_is_not_a_file_is_neither_waited_for_nor_followed() {
    let sandbox = sandbox();
    let names: Vec<_> = DEEDS.iter().map(|(name, ..)| *name).collect();
    let letters = run(&sandbox, &names);
    for (name, _, complaint) in DEEDS {
        let failure = &letters[name]["failures"][0];
        let stderr = failure["stderr"].as_str().unwrap_or_default();
        match complaint {
            Some(complaint) => {
                assert!(stderr.contains("the payload was not kept") && stderr.contains(complaint), "{name}: {failure}");
                assert!(failure["payload"].is_null(), "{name}: {failure}");
            }
            None => assert!(!failure["payload"].is_null() && stderr.is_empty(), "{name}: {failure}"),
        }
    }
    let sparse = &letters["sparse"]["failures"][0]["payload"];
    assert_eq!((sparse["size_bytes"].as_u64(), sparse["total_bytes"].as_u64()), (Some(1 << 20), Some(4 << 40)));
    let shown = |name: &str| sandbox.run(&["payload", "show", letters[name]["id"].as_str().expect("an id")]).stdout;
    assert_eq!((shown("hard-link"), shown("honest")), ("linked\n".to_owned(), "honest\n".to_owned()));
    let scratch = fs::read_dir(sandbox.path("tmp")).expect("there").flatten().next().expect("a folder").path();
    let left: Vec<_> = fs::read_dir(&scratch).expect("there").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
    sandbox.assert_sound();
}

#[test]
fn a_folder_that_is_replaced_leads_nowhere_and_the_next_job_has_one_again() {
    let sandbox = sandbox();
    let replace = "mv \"$D\" \"$D.away\"; ln -s \"$PWD/elsewhere\" \"$D\"; echo x > \"$F\"";
    sandbox.write("deeds/replace", replace);
    sandbox.write("deeds/another", "echo another > \"$F\"");
    fs::create_dir(sandbox.path("elsewhere")).expect("made");
    let old = sandbox.write("elsewhere/old.payload", "somebody's");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7_200);
    fs::File::open(&old).expect("opened").set_modified(long_ago).expect("set");
    let letters = run(&sandbox, &["replace", "honest"]);
    assert!(letters["replace"]["payload"].is_null(), "what lies elsewhere is not ours: {}", letters["replace"]);
    assert!(!letters["honest"]["payload"].is_null(), "{}", letters["honest"]);
    assert_eq!(fs::read_dir(sandbox.path("elsewhere")).expect("there").count(), 2, "nothing is removed there");
    // Whoever comes later finds the symlink where the folder was.
    let letters = run(&sandbox, &["fifo", "another"]);
    assert!(letters["another"]["payload"].is_string(), "{}", letters["another"]);
    assert_eq!(fs::read_dir(sandbox.path("elsewhere")).expect("there").count(), 2, "nothing is removed there");
    sandbox.assert_sound();
}
