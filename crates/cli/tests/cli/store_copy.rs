//! `redrive store copy`: everything comes over, in either direction, whatever happens on the way.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{DemoSite, Sandbox, eventually, kill_after, kills_wanted};
use crate::postgres_server::{schema, server};

const FROM: &str = "sqlite:.redrive/redrive.db";

const SHOP: &str = r#"
[pipeline.shop]
handler = "http"
[pipeline.shop.retry]
attempts = 1
[pipeline.shop.extract.fields]
price = { select = "PRICE", type = "number" }
"#;

/// The address of a store in a schema of its own.
fn postgres() -> String {
    let folder = server().display().to_string().replace('/', "%2F");
    format!("postgres://redrive@{folder}/postgres?schema={}", schema())
}

/// A store with tasks that are done, dead with a payload, queued and given up.
fn lived(sandbox: &Sandbox) -> DemoSite {
    let site = DemoSite::start(sandbox);
    sandbox.write("redrive.toml", SHOP.replace("PRICE", ".price-tag-main::text"));
    let urls = (60..66).map(|n| format!("{}\n", json!({"url": site.url(&format!("products/{n}"))})));
    sandbox.write("tasks.jsonl", urls.collect::<String>());
    sandbox.redrive("run tasks.jsonl --round monday").expect(3);
    sandbox.write("more.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    sandbox.redrive("push more.jsonl --pipeline later").expect(0);
    let queued = sandbox.redrive("job list --state queued --json").expect(0).json_lines();
    let id = queued[0]["id"].as_str().expect("an id").to_owned();
    sandbox.run(&["job", "cancel", &id, "--why", "one too many"]).expect(0);
    let cause = sandbox.redrive("cause list --json").expect(0).json_lines().remove(0)["id"].clone();
    sandbox.run(&["cause", "note", cause.as_str().expect("an id"), "the page has changed"]).expect(0);
    assert!(sandbox.dead().iter().any(|letter| letter["payload"].is_string()), "there is a payload");
    site
}

fn copy(sandbox: &Sandbox, line: &str) -> Value {
    let copied = sandbox.redrive(&format!("store copy {line} --json")).expect(0).json();
    let parts = copied["parts"].as_array().expect("parts");
    for part in parts {
        assert_eq!(part["source"], part["target"], "{part}");
    }
    let rows = |name: &str| parts.iter().find(|part| part["part"] == name).map(|part| part["source"].clone());
    assert!(rows("identity").is_some_and(|rows| rows.as_u64() > Some(0)), "{copied}");
    copied
}

fn told(sandbox: &Sandbox, store: &str, line: &str) -> Vec<Value> {
    sandbox.redrive(&format!("{line} --store {store}")).expect(0).json_lines()
}

fn ledgers(sandbox: &Sandbox, store: &str) -> Value {
    sandbox.redrive(&format!("status --json --store {store}")).expect(0).json()["pipelines"].clone()
}

/// Each store has a vault of its own.
fn without_address(mut letter: Value) -> Value {
    letter.as_object_mut().and_then(|letter| letter.remove("payload_address"));
    letter
}

/// What both stores say of themselves is the same.
fn assert_same(sandbox: &Sandbox, stores: [&str; 2]) {
    for line in ["dead export", "job list --all --json", "cause list --all --json", "round list --json"] {
        let [one, other] =
            stores.map(|store| told(sandbox, store, line).into_iter().map(without_address).collect::<Vec<_>>());
        assert_eq!(one, other, "{line}");
    }
    let [one, other] = stores.map(|store| ledgers(sandbox, store));
    assert_eq!(one, other);
    for store in stores {
        sandbox.redrive(&format!("audit --store {store}")).expect(0);
    }
}

#[test]
fn a_store_moves_to_postgresql_and_back() {
    let sandbox = Sandbox::new();
    let _site = lived(&sandbox);
    let to = postgres();
    let away = sandbox.path("away");
    sandbox.redrive(&format!("store copy {FROM} {to}")).expect(2).complains("--vault");
    let copied = copy(&sandbox, &format!("{FROM} {to} --vault {}", away.display()));
    assert!(copied["payloads"]["brought"].as_u64() > Some(0), "{copied}");
    assert_eq!((&copied["payloads"]["missing"], &copied["payloads"]["damaged"]), (&json!(0), &json!(0)));
    assert_same(&sandbox, [FROM, &to]);
    let again = sandbox.redrive(&format!("store copy {FROM} {to} --vault {}", away.display())).expect(0);
    assert!(again.stdout.contains("nothing was done"), "{}", again.stdout);

    // The source and its payloads are not needed any more: the mended pipeline works from those that were brought.
    let mended = SHOP.replace("PRICE", ".price data::attr(value)");
    sandbox.write("there.toml", format!("store = \"{to}\"\nvault = \"{}\"\n{mended}", away.display()));
    fs::rename(sandbox.path(".redrive"), sandbox.path("gone")).expect("moved");
    sandbox.redrive("payload verify --config there.toml").expect(0);

    let back = "sqlite:back/redrive.db";
    let line = format!("{to} {back} --from-vault {}", away.display());
    assert_eq!(copy(&sandbox, &line)["payloads"]["brought"], copied["payloads"]["brought"]);
    assert_same(&sandbox, [&to, back]);
    sandbox.redrive("replay start --pipeline shop --saved --config there.toml").expect(0);
    sandbox.redrive("audit --config there.toml").expect(0);
}

#[test]
fn a_store_with_something_of_its_own_is_not_filled() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("push tasks.jsonl").expect(0);
    sandbox.redrive("push tasks.jsonl --store sqlite:own/redrive.db").expect(0);
    sandbox.redrive(&format!("store copy {FROM} sqlite:own/redrive.db")).expect(1).complains("is not empty");
    sandbox.redrive(&format!("store copy {FROM} {FROM}")).expect(2).complains("to itself");
    sandbox.redrive("store copy sqlite:no/redrive.db sqlite:b/redrive.db").expect(1).complains("no store at");
    sandbox.redrive(&format!("store copy {FROM}")).expect(2).complains("TO");
    sandbox.redrive("push tasks.jsonl --round again").expect(0);
}

/// Moves the payloads of the source away, so that the copy stops in the middle.
fn stop_in_the_middle(sandbox: &Sandbox, to: &str) {
    fs::rename(sandbox.path(".redrive/payloads"), sandbox.path("hidden")).expect("moved");
    sandbox.redrive(&format!("store copy {FROM} {to}")).expect(1).complains("--from-vault");
    fs::remove_dir_all(sandbox.path(".redrive/payloads")).expect("removed");
    fs::rename(sandbox.path("hidden"), sandbox.path(".redrive/payloads")).expect("moved back");
}

#[test]
fn what_was_stopped_in_the_middle_goes_on() {
    let sandbox = Sandbox::new();
    let _site = lived(&sandbox);
    let to = "sqlite:new/redrive.db";
    stop_in_the_middle(&sandbox, to);
    sandbox.redrive("push more.jsonl --pipeline later --round two").expect(1).complains("is being copied to");
    let status = sandbox.redrive("status").expect(0).stdout;
    assert!(status.contains("being copied to") && status.contains("new/redrive.db"), "{status}");
    assert!(sandbox.redrive("status --json").expect(0).json()["copying"]["since"].is_string());
    let found = |findings: &Value| findings.as_array()?.iter().find(|finding| finding["check"] == "copy").cloned();
    let copying = found(&sandbox.redrive("doctor --json").json()).expect("told that it is copied");
    assert_eq!(copying["warning"], true, "{copying}");
    assert!(copying["found"].as_str().is_some_and(|said| said.contains("--abort")), "{copying}");
    sandbox.redrive(&format!("status --store {to}")).expect(1).complains("an unfinished copy of");
    sandbox.redrive(&format!("store copy {FROM} sqlite:other/redrive.db")).expect(1).complains("--abort");
    sandbox.redrive(&format!("store copy {FROM} {to} --vault elsewhere")).expect(1).complains("was begun with");
    copy(&sandbox, &format!("{FROM} {to}"));
    assert_same(&sandbox, [FROM, to]);
    assert_eq!(found(&sandbox.redrive("doctor --json").json()), None);
    assert!(!sandbox.redrive("status").expect(0).stdout.contains("being copied"));
    sandbox.redrive("push more.jsonl --pipeline later --round two").expect(0);
    sandbox.redrive(&format!("push more.jsonl --pipeline later --round two --store {to}")).expect(0);
}

#[test]
fn a_copy_can_be_given_up() {
    let sandbox = Sandbox::new();
    let _site = lived(&sandbox);
    let to = "sqlite:new/redrive.db";
    stop_in_the_middle(&sandbox, to);
    sandbox.redrive(&format!("store copy {FROM} --abort")).expect(0);
    let again = sandbox.redrive(&format!("store copy {FROM} --abort")).expect(0);
    assert!(again.stdout.contains("is not being copied"), "{}", again.stdout);
    sandbox.redrive("push more.jsonl --pipeline later --round two").expect(0);
    sandbox.redrive(&format!("store copy {FROM} {to}")).expect(1).complains("take a new one");
    copy(&sandbox, &format!("{FROM} sqlite:newer/redrive.db"));
    assert_same(&sandbox, [FROM, "sqlite:newer/redrive.db"]);
}

/// Payloads that are gone or damaged are told of, and stay so; the others come over.
#[test]
fn payloads_that_are_not_there_are_named() {
    let sandbox = Sandbox::new();
    let _site = lived(&sandbox);
    let listed = sandbox.redrive("payload list --all --json").expect(0).json_lines();
    assert!(listed.len() >= 3, "{listed:?}");
    let file = |n: usize| sandbox.path(".redrive/payloads").join(listed[n]["place"].as_str().expect("a place"));
    fs::remove_file(file(0)).expect("removed");
    fs::write(file(1), "not what it was").expect("written");
    let copied = copy(&sandbox, &format!("{FROM} sqlite:new/redrive.db"));
    let payloads = &copied["payloads"];
    assert_eq!((&payloads["missing"], &payloads["damaged"]), (&json!(1), &json!(1)), "{payloads}");
    assert_eq!(payloads["brought"], listed.len() - 2);
    for n in [0, 1] {
        let hash = listed[n]["hash"].as_str().expect("a hash");
        assert!(payloads["named"].to_string().contains(hash), "{payloads}");
    }
    sandbox.redrive("payload verify --store sqlite:new/redrive.db").expect(5);
}

/// Payloads that are still on their way to a vault that was away come over from the spool. Those that wait on another machine are not
/// left behind without a word.
#[test]
fn payloads_that_wait_in_a_spool_come_over() {
    let sandbox = Sandbox::new();
    let handler = "[pipeline.p]\ncommand = [\"sh\", \"-c\", \"cat > $REDRIVE_PAYLOAD; exit 65\"]\n";
    sandbox.write("redrive.toml", handler);
    sandbox.write("tasks.jsonl", (0..5).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox.write("none.jsonl", "");
    sandbox.redrive("run none.jsonl").expect(0);
    let conn = rusqlite::Connection::open(sandbox.path(".redrive/redrive.db")).expect("opened");
    let id: String = conn.query_row("SELECT id FROM store_id", [], |row| row.get(0)).expect("an id");
    // The vault fails: a file is where the folder of this store should be.
    let block = sandbox.path(".redrive/payloads").join(id);
    fs::write(&block, "in the way").expect("written");
    sandbox.redrive("run tasks.jsonl").expect(3).complains("the vault is away");
    let copied = copy(&sandbox, &format!("{FROM} sqlite:new/redrive.db"));
    assert_eq!((&copied["payloads"]["brought"], &copied["payloads"]["missing"]), (&json!(5), &json!(0)), "{copied}");
    let verified = sandbox.redrive("payload verify --store sqlite:new/redrive.db").expect(0).stdout;
    assert!(verified.contains("5 payloads are whole, 0 are not"), "{verified}");
    let whole = |letters: Vec<Value>| -> Vec<Value> { letters.into_iter().map(without_address).collect() };
    let copied = sandbox.redrive("dead export --store sqlite:new/redrive.db").expect(0).json_lines();
    assert_eq!(whole(copied), whole(sandbox.dead()));

    fs::remove_file(&block).expect("removed");
    fs::rename(sandbox.path(".redrive/redrive.db-spool"), sandbox.path("elsewhere")).expect("moved");
    conn.execute("UPDATE payload SET spooled_on = 'another-host'", []).expect("written");
    let to = "sqlite:newer/redrive.db";
    let refused = sandbox.redrive(&format!("store copy {FROM} {to}")).expect(1);
    refused.complains("5 payloads of").complains("wait on another-host").complains("--allow-missing");
    sandbox.redrive("push tasks.jsonl --round two").expect(0);
    let copied = copy(&sandbox, &format!("{FROM} {to} --allow-missing"));
    assert_eq!(copied["payloads"]["missing"], 5, "{copied}");
}

/// Nothing is moved where both have the same vault, and the copy never removes what the other may need.
#[test]
fn stores_with_one_vault_share_their_payloads() {
    let sandbox = Sandbox::new();
    let _site = lived(&sandbox);
    let vault = sandbox.path(".redrive/payloads");
    let copied = copy(&sandbox, &format!("{FROM} sqlite:new/redrive.db --vault {}", vault.display()));
    assert_eq!(copied["payloads"]["brought"], 0, "{copied}");
    assert!(copied["payloads"]["found"].as_u64() > Some(0), "{copied}");
    let config = format!("store = \"sqlite:new/redrive.db\"\nvault = \"{}\"\n", vault.display());
    sandbox.write("there.toml", config);
    sandbox.redrive("dead discard --pipeline shop --why old --yes --config there.toml").expect(0);
    sandbox.redrive("payload gc --grace 0s --config there.toml").expect(0);
    sandbox.redrive("payload verify").expect(0);
}

#[test]
fn a_store_that_is_worked_on_is_not_copied_and_what_was_left_running_is_queued() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("done.jsonl", "{\"n\":2}\n");
    sandbox.redrive("run done.jsonl -- true").expect(0);
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut worker = sandbox.spawn(&["work", "--", "sleep", "600"]);
    eventually("it runs", || sandbox.ledger("default")["leased"] == 1);
    let pid = worker.id().to_string();
    let refused = sandbox.redrive(&format!("store copy {FROM} sqlite:new/redrive.db")).expect(1);
    let refused = refused.complains("is worked on by").complains("stop them first");
    assert!(refused.stderr.contains(&format!("process {pid} on")), "{}", refused.stderr);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    let copied = copy(&sandbox, &format!("{FROM} sqlite:new/redrive.db"));
    assert_eq!(copied["given_back"], 1);
    let ledger = ledgers(&sandbox, "sqlite:new/redrive.db")["default"].clone();
    assert_eq!((&ledger["queued"], &ledger["leased"], &ledger["retrying"]), (&json!(1), &json!(0), &json!(0)));
    let run = "run tasks.jsonl --store sqlite:new/redrive.db -- true";
    sandbox.redrive(run).expect(0);
    assert_eq!(ledgers(&sandbox, "sqlite:new/redrive.db")["default"]["done"], 2);
}

/// A command that a store remembers is not run on a machine where nobody ran it.
#[test]
fn no_command_comes_into_force_by_a_copy() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    sandbox.write("fails.sh", "grep -q 1 && exit 65; true\n");
    sandbox.redrive("run tasks.jsonl -- sh fails.sh").expect(3);
    copy(&sandbox, &format!("{FROM} sqlite:new/redrive.db"));
    let elsewhere = |line: &str| {
        let mut command = sandbox.command();
        command.env("XDG_STATE_HOME", sandbox.path("of-another"));
        let output = command.args(line.split_whitespace()).output().expect("redrive starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = elsewhere("replay start --pipeline default --store sqlite:new/redrive.db");
    assert!(code == Some(2) && said.contains("repeat it after --"), "{code:?}: {said}");
}

/// Killed at any moment and run again, it goes on where it was; at the end both sides are the same.
#[test]
fn a_copy_that_is_killed_goes_on() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..3_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.write("one.jsonl", "{\"one\":1}\n");
    sandbox.redrive("run one.jsonl --pipeline p -- true").expect(0);
    sandbox.redrive("push tasks.jsonl --pipeline p").expect(0);
    for to in [postgres(), "sqlite:new/redrive.db".to_owned()] {
        for _ in 0..kills_wanted().div_ceil(5) {
            let child = sandbox.spawn(&["store", "copy", FROM, &to]);
            if !kill_after(child, Duration::from_millis(fastrand::u64(20..600))) {
                break;
            }
        }
        // It may have come to its end before.
        let copied = sandbox.redrive(&format!("store copy {FROM} {to} --json")).expect(0).json();
        assert!(copied["finished_before"].is_string() || !copied["parts"].as_array().expect("parts").is_empty());
        assert_same(&sandbox, [FROM, &to]);
        sandbox.redrive(&format!("push one.jsonl --pipeline p --round again --store {to}")).expect(0);
    }
}
