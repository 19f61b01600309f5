//! Poison pills: jobs that take their process down are quarantined, and nobody else is hurt or blamed.

use serde_json::json;

use crate::harness::Sandbox;

#[test]
fn a_job_that_dies_by_signal_or_eats_all_memory_is_quarantined() {
    let sandbox = Sandbox::new();
    let tasks: String = (0..40).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    // 7 dies by signal; 8 and its child eat memory until they are stopped; 9 catches its own lack of memory.
    sandbox.write(
        "handler.py",
        r#"
import json, os, sys, time
n = json.load(sys.stdin)["input"]["n"]
if n == 7:
    os.kill(os.getpid(), 11)
if n == 8:
    os.fork()
    hoard = []
    while True:
        hoard.append(bytearray(8 << 20))
        time.sleep(0.005)
if n == 9:
    raise MemoryError()
print(json.dumps(n))
"#,
    );
    let ran = sandbox.redrive("run tasks.jsonl --backoff 5ms --memory 150MiB -j 4 -- python3 handler.py").expect(3);
    assert_eq!(ran.json_lines().len(), 37, "every other task finished");
    let mut dead = sandbox.dead();
    dead.sort_by_key(|letter| letter["input"]["n"].as_u64());
    let codes: Vec<_> = dead.iter().map(|letter| letter["code"].as_str().expect("a code")).collect();
    assert_eq!(codes, ["SIGSEGV", "out_of_memory", "exit_1"]);
    for letter in &dead {
        assert_eq!(letter["reason"], "poison_pill");
        assert_eq!(
            (&letter["crashes"], &letter["attempts"], &letter["gate"]),
            (&json!(3), &json!(0), &json!("review"))
        );
        assert_eq!(letter["failures"].as_array().map(Vec::len), Some(3));
    }
    let message = dead[1]["message"].as_str().expect("a message");
    assert!(message.contains("of at most 150 MiB"), "{message}");
    sandbox.assert_sound();
}
