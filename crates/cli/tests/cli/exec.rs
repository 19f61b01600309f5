//! The `exec` handler: exit codes, stated failures, limits, and children that misbehave.

use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually, processes_with};

/// Runs one task through a shell script; gives the dead letter.
fn dead_of(script: &str, options: &str) -> (Sandbox, Value) {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1,\"url\":\"https://example.com/\"}\n");
    sandbox.write("handler.sh", script);
    sandbox.redrive(&format!("run tasks.jsonl --backoff 1ms {options} -- sh handler.sh")).expect(3);
    let letter = sandbox.dead().remove(0);
    sandbox.assert_sound();
    (sandbox, letter)
}

#[test]
fn exit_codes_decide() {
    let verdict = |script: &str| {
        let (_, letter) = dead_of(script, "");
        (letter["reason"].clone(), letter["attempts"].clone(), letter["code"].clone())
    };
    assert_eq!(verdict("exit 64"), (json!("misconfigured"), json!(1), json!("EX_USAGE")));
    assert_eq!(verdict("exit 65"), (json!("rejected_input"), json!(1), json!("EX_DATAERR")));
    assert_eq!(verdict("exit 78"), (json!("misconfigured"), json!(1), json!("EX_CONFIG")));
    assert_eq!(verdict("exit 75"), (json!("handler_error"), json!(4), json!("EX_TEMPFAIL")));
    assert_eq!(verdict("exit 17"), (json!("handler_error"), json!(4), json!("exit_17")));
}

#[test]
fn a_dead_letter_has_everything() {
    let failure = r#"{"failure":{"reason":"schema_validation","code":"SelectorNotFound","message":".price-tag-main","error_type":"SelectorNotFound","stage":"extract","http_status":200,"proxy":"dc-7","stack":"at parse (scrape.js:10)"}}"#;
    let script = format!("echo 'fetching' >&2\necho '{failure}'\nexit 1\n");
    let (sandbox, letter) = dead_of(&script, "");
    for (field, expected) in [
        ("pipeline", json!("default")),
        ("input", json!({"n": 1, "url": "https://example.com/"})),
        ("target", json!("example.com")),
        ("reason", json!("schema_validation")),
        ("code", json!("SelectorNotFound")),
        ("message", json!(".price-tag-main")),
        ("attempts", json!(1)),
        ("crashes", json!(0)),
        ("replays", json!(0)),
        ("gate", json!("review")),
        ("http_status", json!(200)),
        ("proxy", json!("dc-7")),
    ] {
        assert_eq!(letter[field], expected, "{field}");
    }
    assert!(letter["id"].is_string() && letter["key"].is_string() && letter["died_at"].is_string());
    let failure = &letter["failures"][0];
    assert_eq!((&failure["stage"], &failure["stack"]), (&json!("extract"), &json!("at parse (scrape.js:10)")));
    assert_eq!(failure["stderr"], "fetching\n");
    let id = letter["id"].as_str().expect("an id");
    let shown = sandbox.run(&["dead", "show", id]).expect(0).stdout;
    for part in ["schema_validation", ".price-tag-main", "at parse (scrape.js:10)", "example.com", "dc-7"] {
        assert!(shown.contains(part), "{part} in:\n{shown}");
    }
    assert_eq!(sandbox.run(&["dead", "show", id, "--json"]).expect(0).json(), letter);
}

#[test]
fn statuses_are_classified_and_retry_after_is_honoured() {
    let blocked = dead_of("echo '{\"status\":403,\"message\":\"go away\"}'; exit 1", "").1;
    assert_eq!((&blocked["reason"], &blocked["attempts"]), (&json!("blocked"), &json!(1)));
    let begun = Instant::now();
    let limited = dead_of("echo '{\"status\":429,\"retry_after\":0.4}'; exit 1", "--attempts 3").1;
    assert_eq!((&limited["reason"], &limited["attempts"]), (&json!("rate_limited"), &json!(3)));
    assert!(begun.elapsed().as_millis() >= 800, "two waits of 0.4 s");
}

#[test]
fn the_deadline_kills_the_whole_group() {
    let script = "echo working >&2; sleep 300 & sleep 300\n";
    // Time enough to start on a busy machine.
    let (sandbox, letter) = dead_of(script, "--timeout 4s --attempts 1");
    assert_eq!((&letter["reason"], &letter["code"]), (&json!("timeout"), &json!("deadline")));
    assert_eq!(letter["failures"][0]["stderr"], "working\n");
    assert_nothing_runs_in(&sandbox);
}

#[test]
fn a_child_that_prints_without_end_is_stopped() {
    let (_, letter) = dead_of("yes", "--attempts 1");
    assert_eq!(letter["code"], "output_too_large");
    let (_, letter) = dead_of("yes error 1>&2", "--attempts 1 --timeout 4s");
    assert_eq!(letter["code"], "deadline");
    let kept = letter["failures"][0]["stderr"].as_str().expect("a text").len();
    assert!(kept <= 16 * 1024, "{kept} bytes kept");
}

#[test]
fn a_child_that_forks_away_takes_no_time_from_others() {
    for background in ["sleep 300 &", "setsid sleep 300 &", "(setsid sleep 300 > /dev/null 2>&1 &) ; sleep 300 &"] {
        let sandbox = Sandbox::new();
        sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
        sandbox.write("handler.sh", format!("cat > /dev/null\n{background}\necho '{{\"ok\":true}}'\n"));
        let begun = Instant::now();
        let ran = sandbox.redrive("run tasks.jsonl -- sh handler.sh").expect(0);
        assert_eq!(ran.json_lines()[0]["result"], json!({"ok": true}));
        assert!(begun.elapsed().as_secs() < 200, "{background} held the run up");
        assert_nothing_runs_in(&sandbox);
    }
}

#[test]
fn no_zombie_is_left_while_it_works() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..50).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut worker = sandbox.spawn(&["work", "-j", "4", "--", "sh", "-c", "sleep 0.01 & exit 0"]);
    eventually("all are done", || sandbox.ledger("default")["done"] == 50);
    eventually("no zombie is left", || crate::harness::zombies_of(worker.id()) == 0);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
}

#[test]
fn a_persistent_command_takes_job_after_job() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..200).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    let script = r#"
echo started >> started.log
while read -r job; do
  case "$job" in
    *'"n":13}'*) echo '{"failure":{"reason":"blocked","message":"unlucky"}}' ;;
    *'"n":14}'*) kill -9 $$ ;;
    *'"n":15}'*) echo 'this is not JSON' ;;
    *'"n":16}'*) echo 'giving up' >&2; exit 65 ;;
    *'"n":17}'*) sleep 300 ;;
    *) echo "{\"result\":{\"from\":$$}}" ;;
  esac
done
"#;
    sandbox.write("server.sh", script);
    let options = "--persistent -j 2 --backoff 1ms --attempts 2 --timeout 3s --out out.jsonl";
    sandbox.redrive(&format!("run tasks.jsonl {options} -- sh server.sh")).expect(3);
    assert_eq!(sandbox.read("out.jsonl").lines().count(), 195);
    let mut reasons: Vec<_> = sandbox
        .dead()
        .iter()
        .map(|letter| {
            let code = letter["code"].as_str().unwrap_or("-");
            format!("{} {} {code}", letter["input"]["n"], letter["reason"].as_str().expect("a reason"))
        })
        .collect();
    reasons.sort();
    assert_eq!(
        reasons,
        [
            "13 blocked -",
            "14 poison_pill SIGKILL",
            "15 handler_error bad_answer",
            "16 rejected_input EX_DATAERR",
            "17 timeout deadline"
        ]
    );
    let started = sandbox.read("started.log").lines().count();
    assert!(started < 20, "{started} processes for 200 jobs");
    assert_nothing_runs_in(&sandbox);
}

#[test]
fn a_persistent_command_that_says_too_much_or_ends_early_mixes_nothing_up() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..20).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    // Answers with a line too many, or once and then ends.
    for (name, more, after) in [("chatty", "\\n{}", "pass"), ("brief", "", "break")] {
        let script = format!(
            "import json, sys\nfor line in sys.stdin:\n    job = json.loads(line)\n    print(json.dumps({{'result': job['input']['n']}}) + '{more}', flush=True)\n    {after}\n"
        );
        sandbox.write("server.py", script);
        let options = format!("--persistent -j 1 --attempts 1 --pipeline {name}");
        let ran = sandbox.redrive(&format!("run tasks.jsonl {options} -- python3 server.py")).expect(0);
        for result in ran.json_lines() {
            assert_eq!(result["input"]["n"], result["result"], "{name}");
        }
    }
}

#[test]
fn a_line_that_no_job_asked_for_answers_none_and_is_logged() {
    let sandbox = Sandbox::new();
    // Answers, and a moment later says something more that looks like an answer.
    let script = "import json, sys, time\nfor line in sys.stdin:\n    n = json.loads(line)['input']['n']\n    print(json.dumps({'result': n}), flush=True)\n    time.sleep(0.1)\n    print(json.dumps({'result': 'stray'}), flush=True)\n    open(f'said.{n}', 'w').close()\n";
    sandbox.write("server.py", script);
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"python3\", \"server.py\"]\nmode = \"persistent\"\nconcurrency = 1\nout = \"out.jsonl\"\n");
    let log = std::fs::File::create(sandbox.path("log")).expect("made");
    let mut worker = sandbox.command().arg("work").stderr(log).spawn().expect("started");
    for n in 0..3 {
        sandbox.write("tasks.jsonl", format!("{{\"n\":{n}}}\n"));
        sandbox.redrive("push tasks.jsonl --pipeline p").expect(0);
        eventually("it has said too much", || sandbox.path(&format!("said.{n}")).exists());
    }
    eventually("all are done", || sandbox.ledger("p")["done"] == 3);
    worker.kill().expect("killed");
    worker.wait().expect("waited");
    let results: Vec<_> = crate::harness::json_lines(&sandbox.read("out.jsonl"));
    assert!(results.iter().all(|line| line["result"] == line["input"]["n"]), "{results:?}");
    let log = sandbox.read("log");
    assert!(log.contains("a line that no task asked for") && log.contains("stray"), "{log}");
}

#[test]
fn a_line_without_an_id_answers_nothing_where_ids_are_given() {
    let sandbox = Sandbox::new();
    // After every answer another line at once, which comes before or after the next job is sent.
    let script = "import json, sys\nfor line in sys.stdin:\n    job = json.loads(line)\n    print(json.dumps({'id': job['id'], 'result': job['input']['n']}), flush=True)\n    print(json.dumps({'result': 'stray'}), flush=True)\n    print('chatter', flush=True)\n";
    sandbox.write("server.py", script);
    sandbox.write("tasks.jsonl", (0..60).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox.redrive("run tasks.jsonl --persistent -j 2 --out out.jsonl -- python3 server.py").expect(0);
    let results = crate::harness::json_lines(&sandbox.read("out.jsonl"));
    assert_eq!(results.len(), 60);
    assert!(results.iter().all(|line| line["result"] == line["input"]["n"]), "{results:?}");
}

#[test]
fn memory_taken_by_who_left_the_family_counts() {
    let hog = "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        hoard = bytearray(200 << 20)\n        time.sleep(300)\n    os._exit(0)\ntime.sleep(300)\n";
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("hog.py", hog);
    sandbox.redrive("run tasks.jsonl --memory 100MiB --backoff 1ms -- python3 hog.py").expect(3);
    assert_eq!(sandbox.dead()[0]["code"], "out_of_memory");
    assert_nothing_runs_in(&sandbox);
}

#[test]
fn as_the_first_process_it_clears_away_the_dead() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..20).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut first = std::process::Command::new("unshare")
        .args(["--pid", "--fork", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_redrive"), "work", "--"])
        .args(["sh", "-c", "(sleep 0.1 &) ; exit 0"])
        .current_dir(sandbox.path(""))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("unshare is installed");
    eventually("all are done", || sandbox.ledger("default")["done"] == 20);
    let worker = processes_with("\0work\0").into_iter().find(|pid| parent(*pid) == first.id()).expect("it runs");
    eventually("no zombie is left", || crate::harness::zombies_of(worker) == 0);
    first.kill().expect("killed");
    first.wait().expect("waited");
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default().to_owned();
    after_name.split(' ').nth(1).and_then(|parent| parent.parse().ok()).unwrap_or(0)
}

fn assert_nothing_runs_in(sandbox: &Sandbox) {
    let folder = sandbox.path("").display().to_string();
    let pattern = format!("PWD={}", folder.trim_end_matches('/'));
    eventually("nothing is left running", || processes_with(&pattern).is_empty());
}

#[test]
fn secrets_of_the_environment_do_not_get_out() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("token", "pl4nted-s3cret\n");
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"-c\", \"echo refused: $TOKEN >&2; exit 65\"]\nenv = { TOKEN = \"${file:token}\" }\n");
    let ran = sandbox.redrive("run tasks.jsonl").expect(3).complains("refused: ***");
    assert!(!ran.stderr.contains("pl4nted-s3cret"));
    assert!(!sandbox.redrive("dead export").expect(0).stdout.contains("pl4nted-s3cret"));
    let kept = std::fs::read(sandbox.path(".redrive/redrive.db")).expect("read");
    assert!(!kept.windows(14).any(|window| window == b"pl4nted-s3cret"));
}

#[test]
fn what_goes_under_a_name_of_ones_own_is_masked_in_every_part_of_a_failure() {
    let sandbox = Sandbox::new();
    let failure = r#"{"failure": {"message": "shop_pin: pl4nted-1, tokens: ['pl4nted-2', 'pl4nted-3']", "stage": "pl4nted-4", "code": "pl4nted-4", "error_type": "shop_pin=pl4nted-5", "target": "h?shop_pin=pl4nted-6"}}"#;
    sandbox.write("failure.json", failure);
    let config =
        "[pipeline.p]\ncommand = [\"sh\", \"-c\", \"cat failure.json; exit 65\"]\nenv = { SHOP_PIN = \"pl4nted-4\" }\n";
    for names in ["secret_names = [\"shop_pin\"]\n", "http.secret_names = [\"Shop_Pin\"]\n"] {
        sandbox.write("redrive.toml", format!("{config}{names}"));
        sandbox.write("tasks.jsonl", "{\"n\":1}\n");
        sandbox.redrive("run tasks.jsonl").expect(3);
        let letter = sandbox.redrive("dead export").expect(0).stdout;
        assert!(!letter.contains("pl4nted") && letter.contains("\"stage\":\"***\""), "{names}: {letter}");
        std::fs::remove_dir_all(sandbox.path(".redrive")).expect("removed");
    }
}

/// Both modes tell a job where its raw response may be written, and one that is replayed where its saved page is, in the same fields.
#[test]
fn both_modes_name_files_alike() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write(
        "work.py",
        "import json, sys\n\
         for line in sys.stdin:\n\
         \x20   job = json.loads(line)\n\
         \x20   saved = job.get(\"saved\")\n\
         \x20   if saved:\n\
         \x20       print(json.dumps({\"id\": job[\"id\"], \"result\": open(saved[\"file\"]).read()}), flush=True)\n\
         \x20       continue\n\
         \x20   open(job[\"payload_file\"], \"w\").write(\"the page\")\n\
         \x20   print(json.dumps({\"id\": job[\"id\"], \"failure\": {\"reason\": \"schema_validation\", \"message\": \"x\"}}), flush=True)\n",
    );
    for (mode, pipeline) in [("process", "a"), ("persistent", "b")] {
        let config =
            format!("[pipeline.{pipeline}]\ncommand = [\"python3\", \"work.py\"]\npure = true\nmode = \"{mode}\"\n");
        sandbox.write("redrive.toml", config);
        sandbox.redrive("run tasks.jsonl").expect(3);
        let started = sandbox.run(&["replay", "start", "--pipeline", pipeline, "--saved"]).expect(0);
        assert!(started.stdout.contains("the page"), "{mode}: {}", started.stdout);
    }
    sandbox.assert_sound();
}

/// While a persistent command says nothing, the log says for how long.
#[test]
fn a_persistent_command_that_is_silent_is_told_of() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("slow.sh", "while read -r job; do while [ ! -e go ]; do sleep 0.05; done; echo '{\"ok\":1}'; done\n");
    let log = std::fs::File::create(sandbox.path("run.log")).expect("created");
    let mut command = sandbox.command();
    let args = ["run", "tasks.jsonl", "-v", "--persistent", "--", "sh", "slow.sh"];
    let mut running = command.args(args).stdout(std::process::Stdio::null()).stderr(log).spawn().expect("started");
    eventually("its silence is told", || sandbox.read("run.log").contains("the command has not answered for"));
    sandbox.write("go", "");
    assert_eq!(running.wait().expect("waited").code(), Some(0), "{}", sandbox.read("run.log"));
}
