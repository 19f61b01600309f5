//! `redrive` with a store in PostgreSQL: every command works as on a file, and no password is printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::harness::{Ran, Sandbox, eventually};
use super::postgres_server::{OwnServer, schema, server, url_in};

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

/// A command on a host of another name.
fn elsewhere(sandbox: &Sandbox, host: &str, line: &str) -> Command {
    let mut command = Command::new("unshare");
    let script = format!("echo {host} > /proc/sys/kernel/hostname && exec \"$@\"");
    command.args(["--uts", "sh", "-c", script.as_str(), "sh", env!("CARGO_BIN_EXE_redrive")]);
    command.args(line.split_whitespace()).current_dir(sandbox.path(""));
    command
}

/// Each host leaves a mark in its vault. Where that of another is missing, the two have not the same vault, though it has the same name.
#[test]
fn hosts_that_do_not_share_a_vault_are_found_out() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::new());
    let store = address();
    let config = |vault: &Path| {
        format!("store = \"{}\"\nvault = \"{}\"\n[pipeline.shop]\ncommand = [\"true\"]\n", store, vault.display())
    };
    sandbox.write("redrive.toml", config(&sandbox.path("vault")));
    other.write("redrive.toml", config(&other.path("vault")));
    let said = fs::File::create(other.path("said")).expect("made");
    let mut first = sandbox.spawn(&["work"]);
    let at_work = |count: usize| {
        let status = sandbox.redrive("status --json").json_or_null();
        status["workers"].as_array().is_some_and(|workers| workers.len() == count)
    };
    eventually("one works", || at_work(1));
    assert_eq!(found(&sandbox, "vault")["ok"], true);
    let mut second = elsewhere(&other, "elsewhere", "work").stderr(said).spawn().expect("redrive starts");
    eventually("two work", || at_work(2));
    let vault = found(&sandbox, "vault");
    assert_eq!(vault["ok"], false, "{vault}");
    let told = vault["found"].as_str().expect("a text");
    assert!(told.contains("no mark of the workers on elsewhere: they have another vault"), "{told}");
    eventually("the one that came later says so", || {
        other.read("said").contains("workers on that host keep payloads elsewhere")
    });
    // With a folder that both have, all is well.
    second.kill().expect("killed");
    second.wait().expect("waited");
    other.write("redrive.toml", config(&sandbox.path("vault")));
    let mut second = elsewhere(&other, "elsewhere", "work").stderr(Stdio::null()).spawn().expect("redrive starts");
    eventually("its mark is there", || found(&sandbox, "vault")["ok"] == true);
    for worker in [&mut first, &mut second] {
        worker.kill().expect("killed");
        worker.wait().expect("waited");
    }
}

#[test]
fn a_server_that_does_not_wait_for_its_disk_is_named() {
    let (sandbox, server) = (Sandbox::new(), OwnServer::start());
    sandbox.write("redrive.toml", format!("store = \"{}\"\n", url_in(server.folder(), "redrive")));
    sandbox.redrive("store migrate").expect(0);
    assert_eq!(found(&sandbox, "durability")["ok"], true);
    for setting in ["fsync", "full_page_writes"] {
        psql(&server, &format!("ALTER SYSTEM SET {setting} = off"));
        psql(&server, "SELECT pg_reload_conf()");
        eventually("it is named", || {
            let durability = found(&sandbox, "durability");
            let told = durability["found"].as_str().is_some_and(|told| told.contains(setting));
            durability["ok"] == false && told
        });
    }
    let told = sandbox.redrive("doctor").expect(1).stdout;
    assert!(told.contains("fsync and full_page_writes is off: a crash of the server's machine destroys"), "{told}");
}

/// A standby can be read. What is to be written waits until it is the primary, and says so meanwhile.
#[test]
fn a_standby_is_read_and_written_once_it_is_the_primary() {
    let (sandbox, server) = (Sandbox::new(), OwnServer::start());
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write("more.jsonl", "{\"n\":3}\n");
    sandbox.write("fails.sh", "grep -q '\"n\":1' && exit 65; echo '{\"ok\":true}'\n");
    let of = |server: &OwnServer| url_in(server.folder(), "redrive");
    let at = |store: &str| {
        let config = format!("store = \"{store}\"\n[pipeline.default]\ncommand = [\"sh\", \"fails.sh\"]\n");
        sandbox.write("redrive.toml", config);
    };
    at(&of(&server));
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.redrive("push more.jsonl").expect(0);
    let standby = server.standby();
    at(&of(&standby));
    for line in
        ["status", "audit", "dead list", "dead show 1", "cause list", "job list", "report", "replay list", "activity"]
    {
        sandbox.redrive(line).expect(0);
    }
    let rights = found(&sandbox, "rights");
    assert_eq!(rights["ok"], false, "{rights}");
    assert!(rights["found"].as_str().is_some_and(|found| found.contains("it is a standby")), "{rights}");
    let serving = sandbox.spawn_saying("served", &["serve", "--listen", "127.0.0.1:0"]);
    let address = || {
        let said = sandbox.read("served");
        let from = said.find("http://")?;
        said[from..].split_whitespace().next().map(|url| url.trim_end_matches(['/', ',', '.']).to_owned())
    };
    eventually("it is served", || address().is_some());
    let asked = |path: &str| {
        let address = address().expect("an address");
        let (port, url) = (address.rsplit(':').next().unwrap_or_default(), format!("{address}{path}"));
        let file = sandbox.path("state/redrive/servers").join(port);
        let ran = Command::new("python3").args(["-c", GET, &url]).arg(file).output().expect("python runs");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    eventually("letters are served", || asked("/api/v1/letters").contains("\"reason\""));
    // A command waits for a while, a worker for as long as it takes; both say what for.
    let mut pushing = sandbox.spawn_saying("pushed", &["push", "tasks.jsonl", "--round", "two"]);
    let worker = sandbox.spawn_saying("worked", &["work"]);
    for who in ["pushed", "worked"] {
        eventually("it says what it waits for", || sandbox.read(who).contains("it is a standby"));
    }
    pushing.kill().expect("killed");
    pushing.wait().expect("waited");
    server.hold(true);
    server.stop();
    psql(&standby, "SELECT pg_promote()");
    eventually("the worker goes on", || sandbox.redrive("job list --state queued --json").expect(0).stdout.is_empty());
    for mut process in [worker, serving] {
        process.kill().expect("killed");
        process.wait().expect("waited");
    }
    sandbox.assert_sound();
}

/// Prints what is found at an address.
const GET: &str = "import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={'authorization': 'Bearer ' + open(sys.argv[2]).read().strip()})
print(urllib.request.urlopen(request).read().decode())";

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
