//! The vault from outside: what belongs to whom, what is kept for how long, and what happens while it is away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::harness::{DemoSite, Sandbox, eventually};
use crate::ports::ClosedPort;

const SHOP: &str = r#"
[pipeline.shop]
handler = "http"
[pipeline.shop.retry]
attempts = 1
[pipeline.shop.extract.fields]
price = { select = "PRICE", type = "number" }
"#;

/// Asking anew may fail in a way that brings no page: the page that was saved before is still the letter's.
#[test]
fn a_refetch_that_fails_keeps_the_saved_page() {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    sandbox.write("redrive.toml", SHOP.replace("PRICE", ".price-tag-main::text"));
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": site.url("products/61")})));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let page = sandbox.dead().remove(0)["payload"].clone();
    assert!(page.is_string(), "the page is kept: {page}");
    drop(site);
    sandbox.redrive("replay start --pipeline shop --refetch").expect(3);
    let letter = sandbox.dead().remove(0);
    assert_eq!((&letter["reason"], &letter["replays"]), (&json!("network"), &json!(1)), "{letter}");
    assert_eq!(letter["payload"], page, "it has no newer one");
    let plan = sandbox.redrive("replay plan --pipeline shop --saved --json").expect(0).json();
    assert_eq!((&plan["included"], &plan["saved"]), (&json!(1), &json!(1)), "{plan}");
    sandbox.write("redrive.toml", SHOP.replace("PRICE", ".price data::attr(value)"));
    let tried = sandbox.redrive("replay try --pipeline shop --json").expect(0).json();
    assert_eq!((&tried["tried"], &tried["recovered"]), (&json!(1), &json!(1)), "{tried}");
    sandbox.redrive("replay start --pipeline shop --saved").expect(0);
    sandbox.assert_sound();
}

/// Puts a file that looks three hours old.
fn put_old(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
    let then = SystemTime::now() - Duration::from_secs(3 * 3_600);
    fs::File::options().write(true).open(path).and_then(|file| file.set_modified(then)).expect("set");
}

/// All files below a folder that end so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path, ending) } else { vec![path] });
    all.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// A command that fails and leaves its input as the page.
const PAGES: &str = "cat > $REDRIVE_PAYLOAD; exit 65";

/// A folder in which every task of `tasks.jsonl` dies with a page.
fn with_pages(tasks: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", (0..tasks).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox
}

fn run_pages(sandbox: &Sandbox, store: &str) {
    sandbox.run(&["run", "tasks.jsonl", "--store", store, "--", "sh", "-c", PAGES]).expect(3);
}

fn gc(sandbox: &Sandbox, store: &str, more: &[&str]) -> serde_json::Value {
    std::thread::sleep(Duration::from_millis(5));
    sandbox.run(&[&["payload", "gc", "--grace", "0s", "--json", "--store", store], more].concat()).expect(0).json()
}

/// The vault of a store is the folder `payloads` beside it, which may be anybody's.
#[test]
fn collection_leaves_the_files_of_others_alone() {
    let sandbox = with_pages(1);
    let looks_like_ours = format!("payloads/ab/{}-0123abcd.zst", "ab".repeat(32));
    let elsewhere = format!("payloads/{}/ab/{}-0123abcd.zst", "0".repeat(32), "ab".repeat(32));
    let others =
        ["payloads/invoice.pdf", "payloads/ab/notes.zst", "elsewhere/letter.txt", &looks_like_ours, &elsewhere];
    others.iter().for_each(|name| put_old(&sandbox.path(name), "mine"));
    sandbox.redrive("run tasks.jsonl --store sqlite:shop.db -- true").expect(0);
    sandbox.redrive("payload gc --store sqlite:shop.db").expect(0);
    sandbox.write("tasks.jsonl", "{\"m\":1}\n");
    run_pages(&sandbox, "sqlite:shop.db");
    let ours = files(&sandbox.path("payloads"), ".zst")
        .into_iter()
        .find(|path| !fs::read(path).expect("read").starts_with(b"mine"));
    let own = ours.expect("a payload").ancestors().nth(2).expect("its store").to_owned();
    // Inside its own place, too, only what it wrote is its own; what lies behind a link is not.
    put_old(&own.join("cd/readme.txt"), "mine");
    let name = format!("{}-0123abcd.zst", "ef".repeat(32));
    put_old(&sandbox.path("elsewhere").join(&name), "mine");
    std::os::unix::fs::symlink(sandbox.path("elsewhere"), own.join("ef")).expect("linked");
    let name = format!("{}-00000001.zst", "12".repeat(32));
    put_old(&own.join("12").join(format!("{name}#1")), "of an upload that was killed");
    put_old(&own.join("12").join(&name), "of a save that was killed");
    let report = gc(&sandbox, "sqlite:shop.db", &[]);
    assert_eq!((&report["unused"], &report["strays"]), (&json!(0), &json!(2)), "{report}");
    for name in others {
        assert_eq!(sandbox.read(name), "mine", "{name}");
    }
    assert!(own.join("cd/readme.txt").exists() && own.join("ef").exists());
    assert_eq!(files(&sandbox.path("elsewhere"), ".zst").len(), 1, "nothing behind a link is removed");
    sandbox.redrive("payload verify --store sqlite:shop.db").expect(0);
}

/// Two stores with one vault never meet, though they keep the same pages.
#[test]
fn two_stores_in_one_folder_keep_to_themselves() {
    let sandbox = with_pages(3);
    let stores = ["sqlite:shop.db", "sqlite:stock.db"];
    stores.iter().for_each(|store| run_pages(&sandbox, store));
    assert_eq!(files(&sandbox.path("payloads"), ".zst").len(), 6);
    sandbox.redrive("dead discard --pipeline default --why test --yes --store sqlite:shop.db").expect(0);
    for (store, unused) in stores.iter().zip([3, 0]) {
        let report = gc(&sandbox, store, &[]);
        assert_eq!((&report["unused"], &report["strays"]), (&json!(unused), &json!(0)), "{store}: {report}");
    }
    let verified = sandbox.redrive("payload verify --store sqlite:stock.db").expect(0).stdout;
    assert!(verified.contains("3 payloads are whole, 0 are not"), "{verified}");
    assert_eq!(files(&sandbox.path("payloads"), ".zst").len(), 3);
}

/// A copy reads what it inherited and removes none of it, until it is said to be the only one.
#[test]
fn a_copied_store_does_not_collect_for_the_original() {
    let sandbox = with_pages(3);
    sandbox.write("redrive.toml", format!("vault = \"{}\"\n", sandbox.path("payloads").display()));
    run_pages(&sandbox, "sqlite:shop.db");
    fs::create_dir(sandbox.path("copy")).expect("made");
    for name in ["shop.db", "shop.db-wal"] {
        let _ = fs::copy(sandbox.path(name), sandbox.path("copy").join(name));
    }
    let (original, copy) = ("sqlite:shop.db", "sqlite:copy/shop.db");
    let whole = |store: &str, payloads: u64| {
        let verified = sandbox.run(&["payload", "verify", "--store", store]).expect(0).stdout;
        assert!(verified.contains(&format!("{payloads} payloads are whole, 0 are not")), "{store}: {verified}");
    };
    whole(copy, 3);
    sandbox.run(&["dead", "discard", "--pipeline", "default", "--why", "x", "--yes", "--store", copy]).expect(0);
    let report = gc(&sandbox, copy, &[]);
    assert_eq!(
        (&report["unused"], &report["strays"], &report["inherited"]),
        (&json!(0), &json!(0), &json!(1)),
        "{report}"
    );
    whole(original, 3);
    sandbox.write("tasks.jsonl", "{\"new\":1}\n");
    run_pages(&sandbox, copy);
    let report = gc(&sandbox, original, &[]);
    assert_eq!(
        (&report["unused"], &report["strays"], &report["inherited"]),
        (&json!(0), &json!(0), &json!(0)),
        "{report}"
    );
    whole(copy, 4);
    let said = sandbox.run(&["payload", "gc", "--store", copy]).expect(0).stdout;
    assert!(said.contains("this store was copied") && said.contains("--adopt"), "{said}");
    fs::remove_file(sandbox.path("shop.db")).expect("removed");
    let report = gc(&sandbox, copy, &["--adopt"]);
    assert_eq!((&report["unused"], &report["inherited"]), (&json!(3), &json!(0)), "{report}");
    whole(copy, 1);
    sandbox.run(&["audit", "--store", copy]).expect(0);
}

/// Equal bytes are kept once only where they are this store's own, and there.
#[test]
fn equal_bytes_are_written_again_if_those_of_before_are_anothers_or_gone() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", format!("vault = \"{}\"\n", sandbox.path("payloads").display()));
    let same_page = |n: u32, store: &str| {
        sandbox.write("tasks.jsonl", format!("{{\"n\":{n}}}\n"));
        let page = "printf 'the same page' > $REDRIVE_PAYLOAD; exit 65";
        sandbox.run(&["run", "tasks.jsonl", "--store", store, "--", "sh", "-c", page]).expect(3);
    };
    let whole = |store: &str| {
        let verified = sandbox.run(&["payload", "verify", "--store", store]).expect(0).stdout;
        assert!(verified.contains("1 payloads are whole, 0 are not"), "{store}: {verified}");
    };
    let (original, copy) = ("sqlite:shop.db", "sqlite:copy.db");
    same_page(1, original);
    for name in ["db", "db-wal"] {
        let _ = fs::copy(sandbox.path(&format!("shop.{name}")), sandbox.path(&format!("copy.{name}")));
    }
    same_page(2, copy);
    sandbox.run(&["dead", "discard", "--pipeline", "default", "--why", "x", "--yes", "--store", original]).expect(0);
    gc(&sandbox, original, &[]);
    whole(copy);
    fs::remove_dir_all(sandbox.path("payloads")).expect("removed");
    same_page(3, copy);
    whole(copy);
    sandbox.run(&["audit", "--store", copy]).expect(0);
}

/// Payloads of the older layout go with their own row; what no row knows there is told, and stays.
#[test]
fn payloads_without_a_store_go_only_with_their_row() {
    let sandbox = with_pages(2);
    run_pages(&sandbox, "sqlite:shop.db");
    let conn = rusqlite::Connection::open(sandbox.path("shop.db")).expect("opened");
    for path in files(&sandbox.path("payloads"), ".zst") {
        let place = path.strip_prefix(sandbox.path("payloads")).expect("inside").to_str().expect("text");
        let older = &place[33..];
        fs::create_dir_all(sandbox.path("payloads").join(&older[..2])).expect("made");
        fs::rename(&path, sandbox.path("payloads").join(older)).expect("moved");
        conn.execute("UPDATE payload SET place = ?2, store = '' WHERE place = ?1", [place, older]).expect("written");
    }
    conn.execute("INSERT INTO store_id (id, state) VALUES ('', 'adopted')", []).expect("written");
    drop(conn);
    let stray = sandbox.path(&format!("payloads/ab/{}-0123abcd.zst", "ab".repeat(32)));
    put_old(&stray, "of another store");
    sandbox.redrive("payload verify --store sqlite:shop.db").expect(0);
    sandbox.redrive("dead discard --text \"n\":1 --why test --yes --store sqlite:shop.db").expect(0);
    let report = gc(&sandbox, "sqlite:shop.db", &[]);
    assert_eq!((&report["unused"], &report["strays"], &report["older_strays"]), (&json!(1), &json!(0), &json!(1)));
    let said = sandbox.redrive("payload gc --store sqlite:shop.db").expect(0).stdout;
    assert!(said.contains("1 files in the layout of older versions"), "{said}");
    assert!(stray.exists());
    assert_eq!(files(&sandbox.path("payloads"), ".zst").len(), 2);
    let copied = Command::new("cp").args(["shop.db", "copy.db"]).current_dir(sandbox.path("")).status();
    assert!(copied.expect("cp").success());
    sandbox.redrive("dead discard --pipeline default --why test --yes --store sqlite:copy.db").expect(0);
    assert_eq!(gc(&sandbox, "sqlite:copy.db", &[])["unused"], 0, "the original refers to it");
    sandbox.redrive("payload verify --store sqlite:shop.db").expect(0);
    assert_eq!(gc(&sandbox, "sqlite:copy.db", &["--adopt"])["unused"], 1);
    assert!(stray.exists());
}

/// Without any grace, beside workers that keep pages: every letter has its page, or says that it is lost and why.
#[test]
fn collecting_beside_a_running_pipeline_loses_nothing_in_silence() {
    let sandbox = with_pages(120);
    // Every second page is the same as the one before it.
    let script =
        "sed 's/.*\"n\":\\([0-9]*\\).*/\\1/' | { read -r n; echo page $((n / 2)) > $REDRIVE_PAYLOAD; }; exit 65";
    let mut run = sandbox.spawn(&["run", "tasks.jsonl", "--concurrency", "8", "--", "sh", "-c", script]);
    let mut collections = 0;
    while run.try_wait().expect("asked").is_none() {
        sandbox.redrive("payload gc --grace 0s");
        collections += 1;
    }
    assert!(collections > 3, "{collections}");
    sandbox.assert_sound();
    let letters = sandbox.dead();
    assert_eq!(letters.len(), 120);
    for letter in letters {
        let payload = &letter["failures"][0]["payload"];
        assert!(payload["hash"].is_string(), "{letter}");
        if payload["lost"].is_null() {
            assert_eq!(letter["payload"], payload["hash"]);
            sandbox.run(&["payload", "show", letter["id"].as_str().expect("an id")]).expect(0);
        }
    }
    sandbox.redrive("payload verify").expect(0);
}

/// A vault in a folder, and what makes it fail: a file where the folder of this store should be.
struct Blockable {
    sandbox: Sandbox,
    block: PathBuf,
}

impl Blockable {
    fn new(tasks: u64, config: &str) -> Self {
        let sandbox = with_pages(tasks);
        let pipeline = format!("[pipeline.p]\ncommand = [\"sh\", \"-c\", \"{PAGES}\"]\n");
        sandbox
            .write("redrive.toml", format!("store = \"sqlite:shop.db\"\n{}\n{pipeline}{config}\n", spool_max(config)));
        sandbox.write("none.jsonl", "");
        sandbox.redrive("run none.jsonl").expect(0);
        let conn = rusqlite::Connection::open(sandbox.path("shop.db")).expect("opened");
        let id: String = conn.query_row("SELECT id FROM store_id", [], |row| row.get(0)).expect("an id");
        let block = sandbox.path("payloads").join(id);
        fs::write(&block, "in the way").expect("written");
        Self { sandbox, block }
    }

    fn unblock(&self) {
        fs::remove_file(&self.block).expect("removed");
    }

    fn spooled(&self) -> Vec<PathBuf> {
        files(&self.sandbox.path("shop.db-spool"), ".zst")
    }
}

fn spool_max(config: &str) -> &'static str {
    if config.contains("# no room") { "spool_max = \"1B\"" } else { "" }
}

fn mode_of(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).expect("there").permissions()) & 0o777
}

/// While the vault is away its pages wait on disk, can be read, and reach it later, however often that is interrupted.
#[test]
fn a_vault_that_is_away_costs_no_work() {
    let vault = Blockable::new(30, "");
    let sandbox = &vault.sandbox;
    sandbox.redrive("run tasks.jsonl").expect(3).complains("the vault is away");
    let letters = sandbox.dead();
    assert_eq!((letters.len(), vault.spooled().len()), (30, 30));
    assert_eq!(mode_of(&sandbox.path("shop.db-spool")), 0o700);
    assert!(vault.spooled().iter().all(|path| mode_of(path) == 0o600));
    let id = letters[0]["id"].as_str().expect("an id");
    let page = sandbox.run(&["payload", "show", id]).expect(0).stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&page).expect("JSON")["input"], letters[0]["input"]);
    assert!(sandbox.redrive("payload list").expect(0).stdout.contains("on its way (spooled on "));
    let doctor = sandbox.redrive("doctor").expect(1).stdout;
    assert!(
        doctor.contains("30 payloads") && doctor.contains("✗ vault: "),
        "doctor tells what waits, and why: {doctor}"
    );
    assert_eq!(gc(sandbox, "sqlite:shop.db", &[])["unused"], 0);
    // Without the spool, as on another machine, it cannot be read.
    fs::create_dir(sandbox.path("other")).expect("made");
    fs::copy(sandbox.path("shop.db"), sandbox.path("other/shop.db")).expect("copied");
    let elsewhere = sandbox.run(&["payload", "show", id, "--store", "sqlite:other/shop.db"]).expect(1);
    elsewhere.complains("is on its way (spooled on ");
    vault.unblock();
    for _ in 0..5 {
        let mut worker = sandbox.spawn(&["work"]);
        std::thread::sleep(Duration::from_millis(fastrand::u64(50..400)));
        worker.kill().expect("killed");
        worker.wait().expect("waited");
        assert!(sandbox.redrive("payload verify").expect(0).stdout.contains("30 payloads are whole, 0 are not"));
    }
    // A worker that has nothing else to do goes on for a few seconds, which may be too short on a busy machine.
    eventually("all have arrived", || {
        sandbox.redrive("work --drain").expect(0);
        vault.spooled().is_empty()
    });
    assert_eq!(files(&vault.block, ".zst").len(), 30, "all of them are in the vault");
    assert!(!sandbox.redrive("payload list").expect(0).stdout.contains("on its way"));
    sandbox.redrive("payload verify").expect(0);
    sandbox.assert_sound();
}

/// Without room in the spool an attempt does not count, unless its pipeline can do without the page.
#[test]
fn a_full_spool_loses_nothing_in_silence() {
    let vault = Blockable::new(2, "# no room");
    vault.sandbox.redrive("run tasks.jsonl").expect(1).complains("is full");
    let ledger = vault.sandbox.ledger("p");
    assert_eq!((&ledger["dead"], &ledger["queued"]), (&json!(0), &json!(2)), "{ledger}");
    let vault = Blockable::new(2, "payload_required = false # no room");
    let sandbox = &vault.sandbox;
    sandbox.redrive("run tasks.jsonl").expect(3);
    for letter in sandbox.dead() {
        let why = letter["failures"][0]["payload"]["lost"].as_str().expect("told").to_owned();
        assert!(why.contains("the spool at") && why.contains("is full"), "{why}");
        let id = letter["id"].as_str().expect("an id");
        assert!(sandbox.run(&["dead", "show", id]).expect(0).stdout.contains("lost: "));
        sandbox.run(&["payload", "show", id]).expect(1).complains("is lost");
    }
    let plan = sandbox.redrive("replay plan --pipeline p --refetch --json").expect(0).json();
    assert_eq!(plan["included"], 2, "{plan}");
    sandbox.assert_sound();
}

/// An endpoint that refuses, and one that accepts and never answers: `run` goes on, and so does `work`.
#[test]
fn an_unreachable_bucket_does_not_stop_a_run() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let refusing = ClosedPort::reserve();
    for endpoint in [refusing.url(""), format!("http://{}", silent.local_addr().expect("an address"))] {
        let sandbox = with_pages(6);
        let config = format!("vault = \"s3://bucket/pages\"\n[pipeline.p]\ncommand = [\"sh\", \"-c\", \"{PAGES}\"]\n");
        sandbox.write("redrive.toml", config);
        let mut command = sandbox.command();
        command.args(["run", "tasks.jsonl"]).env("AWS_ENDPOINT", &endpoint);
        for (name, value) in
            [("ACCESS_KEY_ID", "a"), ("SECRET_ACCESS_KEY", "b"), ("REGION", "c"), ("ALLOW_HTTP", "true")]
        {
            command.env(format!("AWS_{name}"), value);
        }
        let output = command.output().expect("redrive starts");
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(files(&sandbox.path(".redrive/redrive.db-spool"), ".zst").len(), 6);
        sandbox.assert_sound();
    }
}
