//! What is seen, and asked, on a terminal of 80 columns.

use crate::harness::{Sandbox, eventually};
use crate::pty::Terminal;
use crate::tasks::{of_before, urls};

#[test]
fn whoever_sits_there_is_asked_about_a_file_that_may_have_run_before() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..10));
    sandbox.redrive("run urls.txt -- true").expect(0);
    of_before(&sandbox, &urls(0..10));
    sandbox.write("urls.txt", urls(1..10));
    let args = ["run", "urls.txt", "--out", "out.jsonl", "--", "true"];
    Terminal::new(&sandbox, 80).type_after("[y/N]", "n").run(&args).expect(2);
    assert_eq!(sandbox.ledger("default")["accepted"], 10);
    let shown = Terminal::new(&sandbox, 80).type_after("[y/N]", "y").run(&args).expect(0).lines();
    assert_eq!(sandbox.ledger("default")["accepted"], 19);
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:?}");
}

#[test]
fn the_bar_and_the_end_of_a_run_fit_80_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", format!("{}https://slow.example/\n", urls(0..40)));
    let failure = r#"{"failure":{"reason":"network","code":"ECONNREFUSED","message":"connect ECONNREFUSED 10.0.0.7:443, and so on and so on"}}"#;
    // The slow one runs until its neighbours are held, and that was seen.
    sandbox.write(
        "fetch.sh",
        format!("if grep -q slow; then until [ -e seen ]; do sleep 0.1; done; exit 65; fi; echo '{failure}'; exit 1\n"),
    );
    sandbox.write(
        "redrive.toml",
        "[pipeline.p]\ncommand = [\"sh\", \"fetch.sh\"]\nconcurrency = 2\n[pipeline.p.breaker]\nattempts_min = 4\n[pipeline.p.retry]\nbase = \"10ms\"\n",
    );
    let terminal = Terminal::new(&sandbox, 80).touch_after("(ECONNREFUSED) ", "held").touch_after("1 running", "seen");
    let shown = terminal.run(&["run", "urls.txt", "--max-wait", "1s"]).expect(3).lines();
    assert!(shown.iter().all(|line| line.chars().count() <= 80), "{shown:?}");
    let held = |line: &&String| line.contains("held ") && line.contains("shop.example (ECONNREFUSED) ");
    let bar = shown.iter().rfind(held).unwrap_or_else(|| panic!("{shown:?}"));
    assert!(shown.iter().any(|line| line.contains("held ") && line.contains("1 running")), "{bar}: {shown:?}");
    assert!(shown.iter().any(|line| line.contains("1 × rejected_input")), "{shown:?}");
}

/// The page is drawn in place and in one piece, follows the size of the window and what happens, and leaves a cursor that is seen.
#[test]
fn the_status_is_drawn_anew_in_its_place_when_something_happens_and_when_the_window_changes() {
    let sandbox = Sandbox::new();
    for n in 0..30 {
        sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
        sandbox.redrive(&format!("push tasks.jsonl --pipeline shop-{n:02}")).expect(0);
    }
    // Not before the first page was seen is there more to see.
    sandbox.write("more.txt", "https://more.example/\n");
    let pushed = std::thread::spawn({
        let (path, mut push) = (sandbox.path("seen"), sandbox.command());
        move || {
            eventually("the first page was seen", || path.exists());
            push.args(["push", "more.txt", "--pipeline", "another"]).output().expect("pushed")
        }
    });
    let shown = Terminal::new(&sandbox, 80)
        .rows(40)
        .touch_after("shop-29", "seen")
        .resize_after("another", 60, 20)
        .interrupt_after("more lines: a larger window shows them")
        .run(&["status", "--watch"])
        .expect(0);
    pushed.join().expect("no panic");
    let pages: Vec<&str> = shown.raw.split("\u{1b}[H").skip(1).collect();
    assert!(pages[0].starts_with("\u{1b}[2J"), "{:?}", pages[0]);
    assert!(pages[1..].iter().all(|page| !page.contains("\u{1b}[2J")), "nothing flickers: {:?}", shown.raw);
    assert!(!shown.raw.contains("\u{1b}[?25l"), "the cursor is never hidden");
    let rows = |page: &&str| page.split("\u{1b}[J").next().unwrap_or_default().matches('\n').count();
    assert_eq!((rows(&pages[0]), rows(pages.last().expect("a page"))), (33, 19), "{:?}", shown.raw);
    assert!(pages.iter().all(|page| page.contains("shop-00") && page.contains("(Ctrl-C ends)")));
    assert!(shown.lines().iter().all(|line| line.chars().count() <= 80), "{:?}", shown.lines());
}

/// The log, what is said and results have the bar step aside: no line is torn.
#[test]
fn beside_the_bar_every_line_is_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..30));
    sandbox.write("fetch.sh", "sleep 0.2; echo '{\"failure\":{\"message\":\"no price\"}}'; exit 65\n");
    let args = ["run", "urls.txt", "-v", "-j", "4", "--", "sh", "fetch.sh"];
    let shown = Terminal::new(&sandbox, 120).run(&args).expect(3).raw;
    let lines: Vec<&str> = shown.split("\r\n").collect();
    let logged: Vec<_> = lines.iter().filter(|line| line.contains("attempt failed")).collect();
    assert!(logged.len() >= 30, "{shown:?}");
    for line in logged {
        let before = line.split("attempt failed").next().unwrap_or_default();
        // The bar may have been there, but then it was taken away before the line began.
        let begun = before.rsplit("\u{1b}[2K").next().unwrap_or_default();
        assert!(!begun.contains('━') && !begun.contains('─'), "{line:?}");
    }
}

/// A command that is asked and says nothing is told from one that works.
#[test]
fn the_bar_says_for_how_long_a_command_is_silent() {
    let sandbox = Sandbox::new();
    sandbox.write("urls.txt", urls(0..1));
    sandbox.write("silent.sh", "read -r job; until [ -e seen ]; do sleep 0.1; done; echo 1; read -r job\n");
    let args = ["run", "urls.txt", "--persistent", "--", "sh", "silent.sh"];
    Terminal::new(&sandbox, 80).touch_after("1 running, 1 silent 1", "seen").run(&args).expect(0);
}
