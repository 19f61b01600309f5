//! The dashboard in a real browser: Chromium without a window, driven by Playwright. One browser runs all flows of `flows.mjs`, and
//! asks here for servers of its own.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use redrive_core::tokens::Role;
use redrive_server::Options;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::running::{LOCAL, Running, tools};

/// How long all flows may take together, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(600);

/// Servers that flows asked for, by their addresses.
#[derive(Default)]
struct Servers(BTreeMap<String, Running>);

impl Servers {
    /// Does what a flow asks for, and answers it.
    async fn obey(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').map(|word| word.trim_start_matches("http://")).collect();
        match words[..] {
            ["open", letters] => self.open(letters, "30000").await,
            ["open", letters, silent] => self.open(letters, silent).await,
            ["stop", address] => {
                self.0.get_mut(address).expect("a server").stop().await;
                "stopped".to_owned()
            }
            ["start", address] => {
                let stopped = self.0.remove(address).expect("a server");
                let options = Options { silence: Duration::from_millis(1_500), ..listening(address) };
                self.0.insert(address.to_owned(), stopped.restart_with(options).await);
                "started".to_owned()
            }
            ["refuse", address, ref verbs @ ..] => {
                self.0.get(address).expect("a server").refuse(verbs);
                "refused".to_owned()
            }
            ["alarm", address] => {
                let server = self.0.get(address).expect("a server");
                server.configure("[alerts.sink.log]\nkind = \"log\"\n");
                server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
                "fires".to_owned()
            }
            ["token", address, name, role] => {
                let role: Role = role.parse().expect("a role");
                self.0.get(address).expect("a server").token(name, role, &[]).await
            }
            _ => panic!("nobody knows how to {line:?}"),
        }
    }

    async fn open(&mut self, letters: &str, silent_ms: &str) -> String {
        let silence = Duration::from_millis(silent_ms.parse().expect("milliseconds"));
        let server = Running::with_options(Options { silence, ..listening("127.0.0.1:0") }).await;
        report(&server, letters.parse().expect("a number")).await;
        let address = server.address.to_string();
        self.0.insert(address.clone(), server);
        address
    }
}

fn listening(address: &str) -> Options {
    Options::listening(address.parse().expect("an address"))
}

async fn report(server: &Running, letters: usize) {
    for number in 0..letters {
        let url = format!("https://shop.example/products/{number}");
        server.report("shop", json!({ "url": url }), "SelectorNotFound: .price-tag-main (field price)").await;
    }
}

#[tokio::test]
async fn pages_live_in_a_browser_as_they_should() {
    let server = Running::start().await;
    report(&server, 12).await;
    let hostile = "</td><script>window.hacked=1</script><img src=//evil.example/x onerror=alert(1)> \u{202e}gpj";
    server.report("shop", json!({ "url": "https://odd.example/<svg onload=alert(1)>" }), hostile).await;
    let flows = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/flows.mjs");
    let mut node = Command::new("node");
    node.arg(flows)
        .arg(format!("http://{}", server.address))
        .env("TOOLS", tools().join("node/node_modules"))
        .env("LOCAL", LOCAL)
        .kill_on_drop(true);
    let mut node = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("node runs");
    let (mut answers, asked) = (node.stdin.take().expect("piped"), node.stdout.take().expect("piped"));
    let told = async {
        let (mut lines, mut said, mut servers) = (BufReader::new(asked).lines(), String::new(), Servers::default());
        while let Some(line) = lines.next_line().await.expect("text") {
            match line.strip_prefix(">> ") {
                Some(asked) => {
                    let answer = servers.obey(asked).await + "\n";
                    answers.write_all(answer.as_bytes()).await.expect("answered");
                }
                None => said = said + &line + "\n",
            }
        }
        (said, node.wait().await.expect("it ends"), servers)
    };
    let (said, ended, servers) = tokio::time::timeout(PATIENCE, told).await.expect("done in time");
    println!("{said}");
    assert!(ended.success(), "{said}");
    server.audit().await;
    for server in servers.0.values() {
        server.audit().await;
    }
}
