//! The recipes for cron, systemd and a container: what they start is started, as they would.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::docs::{blocks, document, root};
use crate::harness::{Sandbox, eventually, json_lines, tools};

const PAGE: &str = "docs/recipes.md";

/// The folder that the recipes are about.
const FOLDER: &str = "/srv/shop";

/// A folder with what the page says that there is.
fn shop() -> Sandbox {
    let sandbox = Sandbox::new();
    for block in blocks(&document(PAGE)) {
        if let Some(file) = block.file() {
            sandbox.write(file, &block.text);
        }
    }
    sandbox.write("urls.txt", "https://shop.example/1\nhttps://shop.example/2\nhttps://shop.example/3\n");
    // The day must not end in the middle of a test.
    fs::create_dir(sandbox.path("tools")).expect("made");
    tool(&sandbox, "date", "[ \"$*\" = +%F ] && echo 2026-11-16");
    sandbox
}

/// A command that comes before the one of the system.
fn tool(sandbox: &Sandbox, name: &str, script: &str) {
    let path = sandbox.write(&format!("tools/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

/// What is to be found first: the tools of the sandbox, then the command that is tested, then these folders.
fn path(sandbox: &Sandbox, folders: &str) -> String {
    let redrive = Path::new(env!("CARGO_BIN_EXE_redrive")).parent().expect("a folder");
    format!("{}:{}:{folders}", sandbox.path("tools").display(), redrive.display())
}

/// What a recipe has, in the place of the folder that it is about, with the command that is tested.
fn here(sandbox: &Sandbox, text: &str) -> String {
    let folder = sandbox.path("").display().to_string();
    text.replace("/usr/local/bin/redrive", env!("CARGO_BIN_EXE_redrive")).replace(FOLDER, folder.trim_end_matches('/'))
}

/// A command without an environment but for what is given.
fn bare(sandbox: &Sandbox, program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", sandbox.path("")).stdin(Stdio::null());
    command
}

#[test]
fn the_page_quotes_the_files_as_they_are() {
    let mut quoted = Vec::new();
    for block in blocks(&document(PAGE)) {
        if let Some(name) = block.file() {
            assert_eq!(
                block.text,
                document(&format!("examples/recipes/{name}")),
                "{PAGE} does not quote {name} as it is"
            );
            quoted.push(name.to_owned());
        }
    }
    let files = fs::read_dir(root().join("examples/recipes")).expect("a folder").flatten();
    let mut there: Vec<_> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    there.sort();
    quoted.sort();
    assert_eq!(quoted, there);
}

/// The lines of a table of cron: what each starts, as cron hands it to the shell.
fn cron_commands(table: &str) -> (BTreeMap<&str, &str>, Vec<String>) {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (variables, jobs): (Vec<_>, Vec<_>) =
        lines.partition(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let variables = variables.iter().filter_map(|line| line.split_once('=')).collect();
    let command = |line: &&str| {
        let mut rest = *line;
        for _ in 0..5 {
            let (field, after) = rest.split_once(char::is_whitespace).expect("five fields");
            assert!(field.chars().all(|c| c.is_ascii_digit() || "*/,-".contains(c)), "{field} in {line}");
            rest = after.trim_start();
        }
        assert!(!rest.replace("\\%", "").contains('%'), "cron ends a line at a percent sign: {rest}");
        rest.replace("\\%", "%")
    };
    (variables, jobs.iter().map(command).collect())
}

#[test]
fn what_cron_starts_works_with_the_environment_of_cron() {
    let sandbox = shop();
    let table = sandbox.read("crontab");
    let (variables, commands) = cron_commands(&table);
    assert_eq!(commands.len(), 2);
    let run = |line: &str| {
        let mut command = bare(&sandbox, variables["SHELL"]);
        command.args(["-c", &here(&sandbox, line)]).env("PATH", path(&sandbox, variables["PATH"]));
        command.output().expect("it starts")
    };
    for again in [false, true] {
        for command in &commands {
            let output = run(command);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.is_empty(), "again: {again}, {command}\n{said}");
        }
        let done = json_lines(&sandbox.read("results.jsonl"));
        assert_eq!(done.len(), 3, "each page once a day: {done:?}");
    }
    sandbox.write("scrape.py", "raise SystemExit(65)");
    sandbox.write("urls.txt", "https://shop.example/4\n");
    let output = run(&commands[0]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("dead: 1"), "cron has something to send: {output:?}");
}

/// The settings of a unit, by section and name; a name may be there more than once.
fn unit(text: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => name.clone_into(&mut section),
            None => {
                let (name, value) = line.split_once('=').expect("a setting");
                settings.push((section.clone(), name.to_owned(), value.to_owned()));
            }
        }
    }
    settings
}

fn setting(unit: &[(String, String, String)], name: &str) -> String {
    let found: Vec<_> = unit.iter().filter(|(_, known, _)| known == name).collect();
    assert_eq!(found.len(), 1, "{name} in {unit:?}");
    found[0].2.clone()
}

/// The command that a unit starts, as systemd would take it apart: words, single quotes, a percent sign doubled.
fn started_by(sandbox: &Sandbox, name: &str) -> Command {
    let unit = unit(&here(sandbox, &sandbox.read(name)));
    assert!(!setting(&unit, "WorkingDirectory").contains(FOLDER));
    let line = setting(&unit, "ExecStart").replace("%%", "%");
    let words: Vec<String> = match line.split_once(" '") {
        Some((before, quoted)) => {
            let words = before.split_whitespace().map(str::to_owned);
            words.chain([quoted.strip_suffix('\'').expect("a quote at the end").to_owned()]).collect()
        }
        None => line.split_whitespace().map(str::to_owned).collect(),
    };
    let mut command = bare(sandbox, &words[0]);
    // As systemd has it.
    command.args(&words[1..]).env("PATH", path(sandbox, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"));
    command.current_dir(setting(&unit, "WorkingDirectory"));
    command
}

#[test]
fn what_systemd_starts_works_and_stops_when_it_is_told_to() {
    let sandbox = shop();
    for _ in 0..2 {
        let pushed = started_by(&sandbox, "redrive-daily.service").output().expect("it starts");
        assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    }
    let mut quiet = started_by(&sandbox, "redrive-work.service");
    let mut worker = quiet.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    eventually("the day's pages are done", || sandbox.ledger("shop")["done"] == 3);
    let killed = Command::new("kill").args(["-TERM", &worker.id().to_string()]).status().expect("kill");
    assert!(killed.success());
    assert!(worker.wait().expect("waited").success(), "told to stop, it ends well");
    let rounds = sandbox.redrive("round list --json").expect(0).json_lines();
    assert_eq!(rounds.len(), 1, "{rounds:?}");
    sandbox.assert_sound();
}

#[test]
fn the_units_say_what_their_page_promises() {
    let sandbox = shop();
    let work = unit(&sandbox.read("redrive-work.service"));
    assert_eq!(setting(&work, "KillMode"), "mixed", "commands must not be told to stop");
    assert!(setting(&work, "TimeoutStopSec").parse::<u32>().expect("seconds") > 20, "running jobs have 20 seconds");
    assert_eq!(setting(&work, "ReadWritePaths"), setting(&work, "WorkingDirectory"));
    let serve = unit(&sandbox.read("redrive-serve.service"));
    assert_eq!(
        (setting(&serve, "KillMode"), setting(&serve, "ReadWritePaths")),
        ("mixed".to_owned(), FOLDER.to_owned())
    );
    assert!(
        setting(&serve, "TimeoutStopSec").parse::<u32>().expect("seconds") > 40,
        "requests and jobs have 20 seconds each"
    );
    assert_eq!(setting(&serve, "ExecReload"), "/bin/kill -HUP $MAINPID");
    let timer = unit(&sandbox.read("redrive-daily.timer"));
    assert!(timer.iter().all(|(section, ..)| ["Unit", "Timer", "Install"].contains(&section.as_str())), "{timer:?}");
}

/// The instructions of a Dockerfile by stage: the stage's name, then what is done in it.
fn stages(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut stages: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (instruction, rest) = line.split_once(' ').expect("an instruction");
        match instruction {
            "FROM" => {
                let name = rest.split_once(" AS ").map_or("", |(_, name)| name);
                stages.push((name.to_owned(), Vec::new()));
            }
            _ => stages.last_mut().expect("a stage").1.push((instruction.to_owned(), rest.to_owned())),
        }
    }
    stages
}

/// A `cargo` that is asked for what the image needs and gives the command that is tested: it was built a moment ago, by the
/// same cargo, and to build it once more takes minutes. `scripts/soak` has the real one do it.
fn stand_in(sandbox: &Sandbox) {
    let script = format!(
        "[ \"$*\" = \"build --locked --profile dev --package redrive-cli\" ] || {{ echo \"cargo $*\" >&2; exit 1; }}\n\
         [ -f Cargo.lock ] || exit 1\nmkdir -p \"$CARGO_TARGET_DIR/debug\"\nln -s {} \"$CARGO_TARGET_DIR/debug/redrive\"",
        env!("CARGO_BIN_EXE_redrive")
    );
    tool(sandbox, "cargo", &script);
}

/// Does what is run in the stage that builds, outside of a container; gives the instructions of a later one, with those that it begins
/// with.
fn build(sandbox: &Sandbox, target: &str) -> Vec<(String, String)> {
    let really = std::env::var_os("REDRIVE_TEST_IMAGE").is_some();
    if !really {
        stand_in(sandbox);
    }
    let out = sandbox.path("out").display().to_string();
    let mut stages = stages(&document("Dockerfile"));
    let built = stages.remove(0).1;
    let mut of = |wanted: &str| stages.remove(stages.iter().position(|(name, _)| name == wanted).expect("a stage")).1;
    let last = [of("base"), of(target)].concat();
    for (instruction, rest) in built {
        if instruction != "RUN" {
            assert!(["ARG", "WORKDIR", "COPY"].contains(&instruction.as_str()), "{instruction} {rest}");
            continue;
        }
        let mut command = Command::new("sh");
        command.args(["-c", &rest.replace("/out", &out)]).current_dir(root()).env("PROFILE", "dev");
        command.env("PATH", path(sandbox, &std::env::var("PATH").unwrap_or_default()));
        command.env("CARGO_TARGET_DIR", if really { tools().join("image") } else { sandbox.path("target") });
        let ran = command.output().expect("sh starts");
        assert!(ran.status.success(), "{rest}\n{}", String::from_utf8_lossy(&ran.stderr));
    }
    last
}

#[test]
fn the_steps_of_the_dockerfile_make_what_it_copies_and_starts() {
    let sandbox = shop();
    let last = build(&sandbox, "");
    let of = |wanted: &str| {
        last.iter().filter(|(name, _)| name == wanted).map(|(_, rest)| rest.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("RUN"), Vec::<&str>::new(), "what is run there is not tried here");
    for copied in of("COPY") {
        let from = copied.split_whitespace().find(|word| word.starts_with('/')).expect("a path");
        if let Some(made) = from.strip_prefix("/out/") {
            assert!(sandbox.path("out").join(made).exists(), "{copied}");
        }
    }
    assert_eq!(of("USER"), ["10001:10001"], "not root");
    assert_eq!(of("WORKDIR"), of("VOLUME"), "what is kept is in the volume");
    let words = |instruction: &str| serde_json::from_str::<Vec<String>>(of(instruction)[0]).expect("a list of words");
    assert_eq!((words("ENTRYPOINT"), words("CMD")), (vec!["redrive".to_owned()], vec!["work".to_owned()]));
    let start = |args: &[&str]| {
        let mut command = bare(&sandbox, &sandbox.path("out/redrive").display().to_string());
        command.args(args).current_dir(sandbox.path("")).env("PATH", "/usr/bin:/bin");
        command.output().expect("it starts")
    };
    assert!(start(&["push", "urls.txt"]).status.success());
    let worked = start(&["work", "--drain"]);
    assert!(worked.status.success(), "{}", String::from_utf8_lossy(&worked.stderr));
    assert_eq!(json_lines(&sandbox.read("results.jsonl")).len(), 3);
}

/// The image that serves has a health check, which says whether the server is ready.
#[test]
fn the_health_check_of_the_image_that_serves_tells_whether_it_is_ready() {
    let sandbox = shop();
    let last = build(&sandbox, "serve");
    let of = |wanted: &str| &last.iter().find(|(name, _)| name == wanted).unwrap_or_else(|| panic!("{wanted}")).1;
    let words = |text: &str| serde_json::from_str::<Vec<String>>(text).expect("a list of words");
    let check = words(of("HEALTHCHECK").split_once("CMD ").expect("a command").1);
    assert_eq!((check[0].as_str(), of("EXPOSE").as_str()), ("redrive", "7171"));
    // Another port than the one of the image, which may be taken on this machine.
    let address = crate::served::free_address();
    let start = |words: &[String]| {
        let mut command = bare(&sandbox, &sandbox.path("out/redrive").display().to_string());
        command.args(words).args(["--listen", &address]).current_dir(sandbox.path("")).env("PATH", "/usr/bin:/bin");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let is_ready = || start(&check[1..]).status().expect("it starts").success();
    assert!(!is_ready(), "nobody serves yet");
    let mut server = start(&words(of("CMD"))).spawn().expect("it starts");
    eventually("it is ready", is_ready);
    let told = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().expect("kill");
    assert!(told.success() && server.wait().expect("waited").success());
    assert!(!is_ready(), "it is gone");
}

/// The image is built of what is not ignored, and by a Rust that is new enough.
#[test]
fn the_dockerfile_sees_all_that_it_needs() {
    let ignored: Vec<String> = document(".dockerignore").lines().map(str::to_owned).collect();
    for needed in ["Cargo.toml", "Cargo.lock", "crates", "bench", "scripts"] {
        assert!(root().join(needed).exists() && !ignored.iter().any(|name| name == needed), "{needed}");
    }
    assert!(ignored.iter().all(|name| !name.contains(['*', '!', '/'])), "only plain names: {ignored:?}");
    let first = document("Dockerfile").lines().find(|line| line.starts_with("FROM")).expect("a stage").to_owned();
    assert!(first.starts_with("FROM rust:1-slim-"), "the newest stable Rust: {first}");
}
