//! Commands that are printed work as they are printed, from a folder that has neither a store nor a configuration.

use std::process::Command;

use crate::harness::{Ran, Sandbox};
use crate::network::{Serving, failed};
use crate::served::local;

/// Verbs of commands that wait for others, or change what the next one is about.
const NOT_RUN: [&str; 4] = [" work", " replay watch", " replay start", " replay resume"];

/// The commands in what was printed, each up to the end of its backticks, its column or its line.
fn printed(ran: &Ran) -> Vec<String> {
    let text = format!("{}\n{}", ran.stdout, ran.stderr);
    let mut found = Vec::new();
    for line in text.lines() {
        let mut parts = line.split("redrive ");
        let mut before = parts.next().unwrap_or_default();
        for rest in parts {
            let end =
                if before.ends_with('`') { rest.find('`') } else { rest.find("  ").or_else(|| rest.find(" \u{1b}")) };
            let words = rest[..end.unwrap_or(rest.len())].trim_end_matches([',', ' ']);
            if words.starts_with("--")
                || words.split(' ').next().is_some_and(|verb| verb.chars().all(char::is_lowercase))
            {
                found.push(words.to_owned());
            }
            before = rest;
        }
    }
    found
}

/// Runs commands as they were printed, in another folder of the same shell.
fn work_as_printed(sandbox: &Sandbox, place: &str, token: &str, lines: &[Vec<&str>]) {
    let mut seen = 0;
    for line in lines {
        let mut command = sandbox.command();
        command.env_remove("REDRIVE_STORE").env("REDRIVE_TOKEN", token).args(place.split(' ')).args(line);
        let ran = Ran::of(command.output().expect("redrive starts"));
        for command in printed(&ran) {
            seen += 1;
            assert!(command.starts_with(&format!("{place} ")), "{line:?} prints `redrive {command}`: {ran:?}");
            if NOT_RUN.iter().any(|verb| command[place.len()..].starts_with(verb)) {
                continue;
            }
            let program = sandbox.command().get_program().to_owned();
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("redrive() {{ \"$0\" \"$@\"; }}; redrive {command}")]).arg(program);
            shell.current_dir(sandbox.path("")).env("REDRIVE_TOKEN", token).env_remove("REDRIVE_STORE");
            let again = Ran::of(shell.output().expect("a shell"));
            assert!([Some(0), Some(3)].contains(&again.code), "`redrive {command}`, printed by {line:?}: {again:?}");
        }
    }
    assert!(seen >= 5, "{seen} commands were printed");
}

fn lines(cause: &str) -> Vec<Vec<String>> {
    let lines =
        ["pipeline pause default", "status", "replay resume last", "cause show beefbeef", "alert ack rate/nobody"];
    let mut lines: Vec<Vec<String>> = lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    lines.push(vec!["breaker".into(), "hold".into(), "the shop's".into()]);
    lines.push(vec!["cause".into(), "show".into(), cause.to_owned()]);
    lines.push("replay start --reason handler_error --detach".split(' ').map(str::to_owned).collect());
    lines
}

#[test]
fn commands_that_are_printed_over_the_network_go_to_the_same_server() {
    let (sandbox, elsewhere) = (failed(), Sandbox::new());
    let serving = Serving::start(&sandbox, &[]);
    let cause = sandbox.redrive("cause list --json").json_lines()[0]["id"].as_str().expect("an id").to_owned();
    let lines = lines(&cause);
    let lines: Vec<Vec<&str>> = lines.iter().map(|line| line.iter().map(String::as_str).collect()).collect();
    work_as_printed(&elsewhere, &format!("--server {}", serving.url()), &local(&serving.address), &lines);
}

#[test]
fn commands_that_are_printed_about_a_named_store_go_to_that_store() {
    let (sandbox, elsewhere) = (failed(), Sandbox::new());
    let cause = sandbox.redrive("cause list --json").json_lines()[0]["id"].as_str().expect("an id").to_owned();
    let lines = lines(&cause);
    let lines: Vec<Vec<&str>> = lines.iter().map(|line| line.iter().map(String::as_str).collect()).collect();
    let store = sandbox.path(".redrive/redrive.db");
    work_as_printed(&elsewhere, &format!("--store sqlite:{}", store.display()), "", &lines);
}
