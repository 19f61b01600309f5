//! `redrive` with a store in PostgreSQL: every command works as on a file, and no password is printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::harness::{Ran, Sandbox, eventually};
use super::postgres_server::{OwnServer, schema, server};

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
    sandbox.write("fails.sh", "grep -q '\"n\":1' && exit 1; echo '{\"ok\":true}'\n");
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

#[test]
fn the_address_of_the_file_takes_its_password_from_elsewhere() {
    let sandbox = Sandbox::new();
    sandbox.write("password", format!("{PASSWORD}@/:\n"));
    let address = address().replace(PASSWORD, &format!("${{file:{}}}", sandbox.path("password").display()));
    sandbox.write("redrive.toml", format!("store = \"{address}\"\n"));
    let ran = sandbox.redrive("store migrate").expect(0);
    assert!(ran.stdout.contains("is at schema") && !ran.stdout.contains(PASSWORD), "{}", ran.stdout);
    sandbox.redrive("store migrate --print").expect(0).complains("nothing to do");
    sandbox.write("redrive.toml", format!("store = \"{}\"\n", address.replace("password}", "missing}")));
    sandbox.redrive("status").expect(2).complains("missing");
}

#[test]
fn a_store_in_a_file_has_nothing_to_print() {
    let sandbox = Sandbox::new();
    sandbox.redrive("store migrate").expect(0);
    sandbox.redrive("store migrate --print").expect(1).complains("brought forward by opening it");
}

/// What doctor found, by what it looked at.
fn found(sandbox: &Sandbox, check: &str) -> serde_json::Value {
    let findings = sandbox.redrive("doctor --json").json();
    let found = findings.as_array().into_iter().flatten().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("{check} is not in {findings}")).clone()
}

#[test]
fn payloads_of_a_shared_store_need_a_vault_that_all_see() {
    let sandbox = Sandbox::new();
    let store = format!("store = \"{}\"\n", address());
    let pipeline = "[pipeline.shop]\ncommand = [\"sh\", \"fails.sh\"]\n";
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("fails.sh", "echo '<p>blocked</p>' > \"$REDRIVE_PAYLOAD\"\nexit 1\n");
    sandbox.write("redrive.toml", format!("{store}{pipeline}"));
    sandbox.redrive("run tasks.jsonl --attempts 1").expect(3).complains("payloads are not kept");
    sandbox.redrive("payload list").expect(2).complains("every worker reaches");
    assert_eq!(found(&sandbox, "vault")["warning"], true);
    // Who asks for payloads to be kept is not left without them.
    sandbox.write("redrive.toml", format!("{store}{pipeline}payload = \"always\"\n"));
    sandbox.redrive("run tasks.jsonl --attempts 1 --again").expect(2).complains("every worker reaches");
    // A folder of this machine is told to be one.
    sandbox.write("redrive.toml", format!("{store}vault = \"one\"\n{pipeline}"));
    sandbox.redrive("run tasks.jsonl --attempts 1 --again").expect(3);
    let vault = found(&sandbox, "vault");
    assert_eq!(vault["ok"], true, "{vault}");
    assert!(vault["found"].as_str().is_some_and(|found| found.contains("a payload was written")), "{vault}");
    // A machine that has another folder under that name does not have what the store knows.
    std::fs::rename(sandbox.path("one"), sandbox.path("two")).expect("moved");
    std::fs::create_dir(sandbox.path("one")).expect("made");
    let vault = found(&sandbox, "vault");
    assert_eq!(vault["ok"], false, "{vault}");
    assert!(vault["found"].as_str().is_some_and(|found| found.contains("does not have payload")), "{vault}");
}

#[test]
fn doctor_looks_at_the_server() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", format!("store = \"{}\"\n", address()));
    sandbox.redrive("store migrate").expect(0);
    for check in [
        "version",
        "rights",
        "encryption",
        "durability",
        "vacuum",
        "horizon",
        "pooler",
        "clock",
        "connections",
        "workers",
    ] {
        assert_eq!(found(&sandbox, check)["ok"], true, "{check}");
    }
    let told = sandbox.redrive("doctor").expect(0).stdout;
    assert!(told.contains("PostgreSQL") && told.contains("! vault"), "{told}");
    sandbox.redrive("doctor --compact").expect(0);
}

/// Runs statements as the owner of a server.
fn psql(server: &OwnServer, sql: &str) {
    let ran = Command::new("psql").args(["-q", "-v", "ON_ERROR_STOP=1", "-d", &server.address(), "-c", sql]).output();
    let ran = ran.expect("psql runs");
    assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_password_is_taken_from_the_files_that_libpq_has_for_it() {
    let (sandbox, server) = (Sandbox::new(), OwnServer::start());
    psql(&server, "CREATE ROLE worker LOGIN PASSWORD 'r1ght'; GRANT CREATE ON DATABASE postgres TO worker");
    let rules = "local all redrive trust\nlocal all all scram-sha-256\n";
    fs::write(server.folder().join("data/pg_hba.conf"), rules).expect("written");
    psql(&server, "SELECT pg_reload_conf()");
    let store = format!("postgres://worker@/postgres?host={}", server.folder().display());
    let home = sandbox.path("home");
    fs::create_dir(&home).expect("made");
    let status = |file: Option<&Path>| {
        let mut command = sandbox.command();
        command.env("HOME", &home).env_remove("PGPASSFILE").env_remove("PGPASSWORD");
        if let Some(file) = file {
            command.env("PGPASSFILE", file);
        }
        let ran = command.args(["store", "migrate", "--store", &store]).output().expect("redrive runs");
        (ran.status.success(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    eventually("the server asks for a password", || {
        let (ok, said) = status(None);
        !ok && said.contains("a password is needed")
    });
    let named = sandbox.write("named", "other:*:*:worker:wr0ng\n*:*:postgres:worker:r1ght\n");
    let own = sandbox.write("home/.pgpass", "*:*:*:worker:r1ght\n");
    let wrong = sandbox.write("wrong", "*:*:*:*:wr0ng\n");
    for file in [&named, &own, &wrong] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("set");
    }
    assert!(status(Some(&named)).0, "{:?}", status(Some(&named)));
    assert!(status(None).0, "{:?}", status(None));
    let (ok, said) = status(Some(&wrong));
    assert!(!ok && said.contains("password authentication failed") && !said.contains("wr0ng"), "{said}");
    // A file that others can read is not one for passwords.
    fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).expect("set");
    assert!(!status(None).0, "{:?}", status(None));
}
