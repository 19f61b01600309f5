//! `redrive payload`: the raw responses of failed attempts, from the command that wrote them to the bytes that come back.

use std::fs;
use std::io::Write;

use serde_json::json;

use crate::disk::Disk;
use crate::harness::{Sandbox, peak_kib};

/// Writes a page for each job; fails for all but the first. Pages 2 and 3 are the same.
const SCRAPE: &str = r#"
read -r job
n=$(printf %s "$job" | sed 's/.*"n":\([0-9]*\).*/\1/')
case "$n" in 2|3) page="<html>the same\0page</html>" ;; *) page="<html>page $n</html>" ;; esac
printf "$page" > "$REDRIVE_PAYLOAD"
[ "$n" = 1 ] && { echo 1; exit 0; }
exit 65
"#;

fn sandbox(config: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("scrape.sh", SCRAPE);
    sandbox.write("redrive.toml", format!("{config}\n[pipeline.p]\ncommand = [\"sh\", \"scrape.sh\"]\n"));
    sandbox.write("tasks.jsonl", (1..=4).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox
}

/// The dead letter of task `n`.
fn letter(sandbox: &Sandbox, n: u64) -> serde_json::Value {
    sandbox.dead().into_iter().find(|letter| letter["input"]["n"] == n).expect("a letter")
}

fn id_of(sandbox: &Sandbox, n: u64) -> String {
    letter(sandbox, n)["id"].as_str().expect("an id").to_owned()
}

#[test]
fn what_broke_it_comes_back_byte_for_byte_and_is_kept_once() {
    let sandbox = sandbox("");
    sandbox.redrive("run tasks.jsonl").expect(3);
    assert_eq!(sandbox.run(&["payload", "show", &id_of(&sandbox, 2)]).expect(0).stdout, "<html>the same\0page</html>");
    let (second, third) = (letter(&sandbox, 2), letter(&sandbox, 3));
    assert_eq!(second["payload"], third["payload"], "the same bytes have the same address");
    assert_eq!(second["failures"][0]["payload"]["size_bytes"], 26);
    let listed = sandbox.redrive("payload list --json").expect(0).json_lines();
    assert_eq!(listed.len(), 2, "equal payloads are kept once, and none of the job that is done");
    let hash = second["payload"].as_str().expect("a hash");
    assert_eq!(sandbox.run(&["payload", "show", &hash[..10]]).expect(0).stdout, "<html>the same\0page</html>");
    let meta = sandbox.run(&["payload", "show", &id_of(&sandbox, 4), "--meta"]).expect(0).json();
    assert_eq!(meta["size_bytes"], 19);
    let path = sandbox.run(&["payload", "open", &id_of(&sandbox, 4)]).expect(0).stdout;
    assert_eq!(fs::read_to_string(path.trim()).expect("written"), "<html>page 4</html>");
    fs::remove_file(path.trim()).expect("removed");
    sandbox.redrive("payload verify").expect(0);
    sandbox.assert_sound();
    sandbox.redrive("payload show zz").expect(2);
    sandbox.redrive("payload show abcdef123456").expect(1).complains("no payload abcdef123456");
}

/// Of a bucket nothing but its address is needed for that: neither is it reached, nor are its keys told.
#[test]
fn the_full_address_of_a_payload_is_told() {
    let sandbox = sandbox("");
    sandbox.redrive("run tasks.jsonl --limit 2").expect(3);
    let place =
        sandbox.redrive("payload list --json").expect(0).json_lines()[0]["place"].as_str().expect("one").to_owned();
    let id = id_of(&sandbox, 2);
    let told = |vault: &str| {
        let address = format!("{vault}/{place}");
        let shown = sandbox.run(&["dead", "show", &id, "--json"]).expect(0).json();
        assert_eq!(shown["payload_address"], address);
        let shown = sandbox.run(&["dead", "show", &id]).expect(0).stdout;
        assert!(shown.replace("\n            ", "").contains(&address), "{shown}");
        assert_eq!(sandbox.redrive("dead list --json").expect(0).json_lines()[0]["payload_address"], address);
        sandbox.redrive("dead export letters.jsonl").expect(0);
        let exported: serde_json::Value = serde_json::from_str(sandbox.read("letters.jsonl").trim()).expect("JSON");
        assert_eq!(exported["payload_address"], address);
        assert!(!exported.to_string().contains("hunter2"), "{exported}");
    };
    told(".redrive/payloads");
    let vault = "[vault]\nurl = \"s3://evidence/shop/\"\nsecret_access_key = \"hunter2\"\naccess_key_id = \"id\"";
    sandbox.write("redrive.toml", format!("{vault}\n[pipeline.p]\ncommand = [\"sh\", \"scrape.sh\"]\n"));
    told("s3://evidence/shop");
}

/// A payload that the vault does not give back is marked by whoever reads it: plans, letters and lists say what can be replayed from
/// saved payloads, until it is found again or written again.
#[test]
fn a_payload_that_is_gone_or_damaged_is_left_out_of_plans_until_it_is_back() {
    let sandbox = sandbox("");
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"scrape.sh\"]\npure = true\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    let saved = |expected: u64| {
        let plan = sandbox.redrive("replay plan --pipeline p --saved --json").expect(0).json();
        let gone = plan["excluded"]["payload_gone"].as_u64().unwrap_or_default();
        assert_eq!((plan["saved"].as_u64(), gone), (Some(expected), 3 - expected), "{plan}");
    };
    let marked = |n: u64| letter(&sandbox, n)["payload_unreadable"]["why"].clone();
    let file = |n: u64| sandbox.path(letter(&sandbox, n)["payload_address"].as_str().expect("an address"));
    saved(3);
    let (alone, kept) = (file(4), fs::read(file(4)).expect("read"));
    fs::remove_file(&alone).expect("removed");
    sandbox.run(&["payload", "show", &id_of(&sandbox, 4)]).expect(1).complains("is not in the vault");
    saved(2);
    assert_eq!(marked(4), "missing");
    let reads = sandbox.redrive("status --json").expect(0).json()["payload_reads"].clone();
    assert_eq!(
        (&reads["found"], &reads["missing"], &reads["unreadable"]),
        (&json!(0), &json!(1), &json!(1)),
        "{reads}"
    );
    let told = "saved responses: 0 of 1 reads found them since 20";
    assert!(sandbox.redrive("status").expect(0).stdout.contains(told));
    assert!(sandbox.redrive("doctor").stdout.contains("1 is missing or damaged: `redrive payload verify` names them"));
    let shown = sandbox.run(&["dead", "show", &id_of(&sandbox, 4)]).expect(0).stdout.replace("\n            ", " ");
    assert!(shown.contains("missing: the vault does not have it, since 20"), "{shown}");
    let number = letter(&sandbox, 4)["number"].clone();
    assert!(shown.contains(&format!("fetch it again: redrive retry {number} --refetch")), "{shown}");
    assert!(sandbox.redrive("payload list").expect(0).stdout.contains(" missing\n"));
    fs::write(&alone, &kept).expect("put back");
    sandbox.redrive("payload verify").expect(0);
    saved(3);
    fs::write(&alone, b"something else").expect("damaged");
    let verified = sandbox.redrive("payload verify").expect(5).stdout;
    assert!(verified.contains("1 payloads are whole, 1 are not\nplans leave those out"), "{verified}");
    saved(2);
    assert_eq!((marked(4), marked(2)), (json!("damaged"), json!(null)));
    // Two letters have one payload; whoever brings the bytes once more writes them again for both.
    fs::remove_file(file(2)).expect("removed");
    sandbox.redrive("payload verify").expect(5);
    saved(0);
    sandbox.write("more.jsonl", "{\"n\":3,\"again\":true}\n{\"n\":4,\"again\":true}\n");
    sandbox.redrive("run more.jsonl").expect(3);
    let plan = sandbox.redrive("replay plan --pipeline p --saved --json").expect(0).json();
    assert_eq!((&plan["saved"], &plan["excluded"]), (&json!(5), &json!({})), "{plan}");
    sandbox.redrive("payload verify").expect(0);
    sandbox.assert_sound();
}

#[test]
fn a_pipeline_may_keep_all_or_none() {
    let all = sandbox("");
    all.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"scrape.sh\"]\npayload = \"always\"\n");
    all.redrive("run tasks.jsonl").expect(3);
    let done =
        all.redrive("job list --state done --json").expect(0).json_lines()[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(all.run(&["payload", "show", &done]).expect(0).stdout, "<html>page 1</html>");
    let none = sandbox("");
    none.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"scrape.sh\"]\npayload = \"never\"\n");
    none.redrive("run tasks.jsonl").expect(3);
    assert_eq!(none.redrive("payload list").expect(0).stdout, "no payloads\n");
    none.run(&["payload", "show", &id_of(&none, 2)]).expect(1).complains("has no payload");
}

#[test]
fn what_nothing_refers_to_is_removed_and_nothing_else() {
    let sandbox = sandbox("");
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.run(&["dead", "discard", &id_of(&sandbox, 2), "--why", "test"]).expect(0);
    let nothing = json!({"unused": 0, "strays": 0, "inherited": 0, "held": false, "older_strays": 0});
    assert_eq!(sandbox.redrive("payload gc --grace 0s --json").expect(0).json(), nothing);
    sandbox.run(&["dead", "discard", &id_of(&sandbox, 3), "--why", "test"]).expect(0);
    assert_eq!(sandbox.redrive("payload gc --json").expect(0).json()["unused"], 0, "what was wanted lately is spared");
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(sandbox.redrive("payload gc --grace 1ms --json").expect(0).json()["unused"], 1);
    let place =
        sandbox.redrive("payload list --json").expect(0).json_lines()[0]["place"].as_str().expect("one").to_owned();
    let stray =
        sandbox.path(".redrive/payloads").join(&place).with_file_name(format!("{}-00000000.zst", &place[36..100]));
    fs::write(&stray, "half a payload").expect("written");
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(sandbox.redrive("payload gc --grace 1ms --json").expect(0).json()["strays"], 1, "left by a kill");
    assert!(!stray.exists());
    assert_eq!(sandbox.run(&["payload", "show", &id_of(&sandbox, 4)]).expect(0).stdout, "<html>page 4</html>");
    sandbox.redrive("payload verify").expect(0);
    sandbox.assert_sound();
}

#[test]
fn a_missing_or_damaged_payload_is_never_an_empty_one() {
    let sandbox = sandbox("");
    sandbox.redrive("run tasks.jsonl").expect(3);
    let place = |n: u64| {
        let hash = letter(&sandbox, n)["payload"].clone();
        let listed = sandbox.redrive("payload list --json").expect(0).json_lines();
        let payload = listed.into_iter().find(|payload| payload["hash"] == hash).expect("listed");
        sandbox.path(".redrive/payloads").join(payload["place"].as_str().expect("a place"))
    };
    fs::remove_file(place(4)).expect("removed");
    let mut other = fs::OpenOptions::new().append(true).open(place(2)).expect("opened");
    other.write_all(b"and more").expect("written");
    sandbox.run(&["payload", "show", &id_of(&sandbox, 4)]).expect(1).complains("is not in the vault");
    let damaged = sandbox.run(&["payload", "show", &id_of(&sandbox, 2)]).expect(1).complains("is damaged");
    assert_eq!(damaged.stdout, "", "nothing is shown of it");
    sandbox.write("page.html", "mine");
    sandbox.run(&["payload", "show", &id_of(&sandbox, 2), "--out", "page.html"]).expect(1);
    assert_eq!(sandbox.read("page.html"), "mine", "nothing is written over");
    let verified = sandbox.redrive("payload verify").expect(5);
    assert!(verified.stdout.contains("0 payloads are whole, 2 are not"), "{}", verified.stdout);
}

#[test]
fn a_huge_payload_is_cut_or_kept_with_little_memory() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("huge.sh", "cat > /dev/null; truncate -s 2G \"$REDRIVE_PAYLOAD\"; exit 65\n");
    for (name, cap, kept) in [("cut", "1MiB", 1_u64 << 20), ("whole", "3GiB", 2 << 30)] {
        let config = format!("[pipeline.{name}]\ncommand = [\"sh\", \"huge.sh\"]\npayload_max = \"{cap}\"\n");
        sandbox.write("redrive.toml", config);
        let peak = peak_kib(&sandbox, &["run", "tasks.jsonl"], 3);
        assert!(peak < 150 * 1024, "{name}: {peak} KiB");
        let letter = sandbox.dead().into_iter().find(|letter| letter["pipeline"] == name).expect("a letter");
        let payload = &letter["failures"][0]["payload"];
        assert_eq!(payload["size_bytes"], kept, "{name}");
        assert_eq!(payload["truncated"] == json!(true), name == "cut");
        assert_eq!(payload["total_bytes"].as_u64(), (name == "cut").then_some(2 << 30));
        let peak = peak_kib(&sandbox, &["payload", "verify", letter["id"].as_str().expect("an id")], 0);
        assert!(peak < 150 * 1024, "{name}: {peak} KiB to read it");
    }
}

#[test]
fn without_its_evidence_there_is_no_verdict() {
    let sandbox = sandbox("vault = \"/proc/no/such/vault\"");
    sandbox.redrive("run tasks.jsonl").expect(1).complains("cannot be used as a vault");
    // Neither the vault nor the spool has room.
    let sandbox = self::sandbox("vault = \"disk\"\nspool_max = \"1B\"");
    let disk = Disk::mount(sandbox.path("disk"), "size=16k");
    disk.fill();
    let ran = sandbox.redrive("run tasks.jsonl");
    drop(disk);
    ran.expect(1).complains("the payload cannot be kept");
    let ledger = sandbox.ledger("p");
    assert_eq!((&ledger["dead"], &ledger["leased"]), (&json!(0), &json!(0)), "nothing is buried without it: {ledger}");
    sandbox.assert_sound();
}

#[test]
fn a_collection_that_is_killed_loses_nothing_that_is_wanted() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"-c\", \"cat > $REDRIVE_PAYLOAD; exit 65\"]\n");
    sandbox.write("tasks.jsonl", (0..300).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.run(&["dead", "discard", "--text", "\"n\":1", "--why", "test", "--yes"]).expect(0);
    let left = sandbox.dead().len();
    assert!(left > 50 && left < 250, "{left}");
    for _ in 0..10 {
        let mut child = sandbox.spawn(&["payload", "gc", "--grace", "1ms"]);
        std::thread::sleep(std::time::Duration::from_millis(fastrand::u64(5..40)));
        child.kill().expect("killed");
        child.wait().expect("waited");
        let verified = sandbox.redrive("payload verify").expect(0).stdout;
        let whole: usize = verified.split(' ').next().expect("a number").parse().expect("a number");
        assert!(whole >= left, "{verified}");
    }
    sandbox.redrive("payload gc --grace 1ms").expect(0);
    let again = sandbox.redrive("payload gc --grace 1ms --json").expect(0).json();
    assert_eq!((&again["unused"], &again["strays"]), (&json!(0), &json!(0)), "nothing is left behind");
    assert_eq!(sandbox.redrive("payload list --all --json").expect(0).json_lines().len(), left);
    sandbox.assert_sound();
}

crate::network::over_the_network! {
    kept: [what_broke_it_comes_back_byte_for_byte_and_is_kept_once],
    soak_but_work: [without_its_evidence_there_is_no_verdict],
}
