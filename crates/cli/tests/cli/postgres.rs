//! `redrive` with a store in PostgreSQL: every command works as on a file, and no password is printed.

use super::harness::{Ran, Sandbox};
use super::postgres_server::{schema, server};

/// A password that the server does not ask for, and that must not be seen.
const PASSWORD: &str = "s3cr3t-w0rd";

/// The address of a store in a schema of its own, with a password.
fn address() -> String {
    let folder = server().display().to_string().replace('/', "%2F");
    format!("postgres://redrive:{PASSWORD}@{folder}/postgres?schema={}", schema())
}

/// Runs a command on a store; the password is nowhere in what it prints.
fn on(sandbox: &Sandbox, address: &str, line: &str) -> Ran {
    let words: Vec<_> = line.split_whitespace().chain(["--store", address]).collect();
    let ran = sandbox.run(&words);
    for said in [&ran.stdout, &ran.stderr] {
        assert!(!said.contains(PASSWORD), "{line} printed the password:\n{said}");
    }
    ran
}

#[test]
fn every_command_works_and_none_prints_the_password() {
    let sandbox = Sandbox::new();
    let address = address();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write("fails.sh", "grep -q 1 && exit 1; echo '{\"ok\":true}'\n");
    on(&sandbox, &address, "status").expect(1).complains("no store at PostgreSQL at");
    let run = format!("run tasks.jsonl --attempts 1 --store {address} -- sh fails.sh");
    let ran = sandbox.redrive(&run).expect(3);
    assert!(!ran.stderr.contains(PASSWORD), "{}", ran.stderr);
    let dead = on(&sandbox, &address, "dead list --json").expect(0).json_lines();
    assert_eq!(dead.len(), 1, "{dead:?}");
    for line in [
        "status",
        "status --json",
        "doctor",
        "doctor --json",
        "audit",
        "pipeline list",
        "pipeline show default",
        "cause list",
        "breaker list",
        "replay list",
        "activity",
        "report",
        "job list",
        "round list",
        "payload list",
        "dead show 1",
        "dead export",
        "-vv dead top",
    ] {
        on(&sandbox, &address, line).expect(0);
    }
}

#[test]
fn an_address_with_a_mistake_is_refused_without_its_password() {
    let sandbox = Sandbox::new();
    let address = address();
    for (wrong, why) in [
        (format!("{address}&sslmod=disable"), "`sslmode`"),
        (format!("{address}&pasword=x"), "`password`"),
        (address.replace("postgres:", "postgre:"), "postgres://USER@HOST/DATABASE"),
        (address.replace("%2F", "%2"), "hexadecimal"),
    ] {
        on(&sandbox, &wrong, "status").expect(2).complains(why);
        sandbox.write("redrive.toml", format!("store = \"{wrong}\"\n"));
        let ran = sandbox.redrive("status").expect(2).complains(why);
        assert!(!ran.stderr.contains(PASSWORD), "{}", ran.stderr);
    }
}
