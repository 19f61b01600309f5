//! The page about stores is run from its beginning to its end, against a server of its own.

use std::path::Path;
use std::process::Command;

use super::docs::{blocks, document};
use super::harness::Sandbox;
use super::postgres_server::OwnServer;

const PAGE: &str = "docs/stores.md";

/// What the page has, with the test's server and a folder in the place of what it speaks of.
fn here(sandbox: &Sandbox, server: &OwnServer, text: &str) -> String {
    let folder = server.folder().display();
    let mut text = text.replace("s3://evidence/redrive", &sandbox.path("vault").display().to_string());
    for database in ["jobs", "restored"] {
        text = text.replace(
            &format!("postgres://worker@db/{database}"),
            &format!("postgres://worker@/{database}?host={folder}"),
        );
    }
    text
}

#[test]
fn the_page_about_stores_runs() {
    let (sandbox, server) = (Sandbox::new(), OwnServer::start());
    let redrive = Path::new(env!("CARGO_BIN_EXE_redrive")).parent().expect("a folder").display();
    let mut ran = 0;
    for block in blocks(&document(PAGE)) {
        if let Some(file) = block.file() {
            sandbox.write(file, here(&sandbox, &server, &block.text));
        }
        for (command, code) in block.commands() {
            let output = Command::new("sh")
                .args(["-c", &here(&sandbox, &server, command)])
                .current_dir(sandbox.path(""))
                .env("PATH", format!("{redrive}:{}", std::env::var("PATH").unwrap_or_default()))
                .env("XDG_STATE_HOME", sandbox.path("state"))
                .envs([("PGHOST", server.folder().display().to_string()), ("PGUSER", "redrive".to_owned())])
                .output()
                .expect("ran");
            let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(code), "{command}\n{stdout}\n{stderr}");
            ran += 1;
        }
    }
    assert!(ran >= 12, "{ran} commands ran");
    // What was restored is what there was.
    let status = |database: &str| {
        let address = here(&sandbox, &server, &format!("postgres://worker@db/{database}"));
        sandbox.run(&["status", "--json", "--store", &address]).expect(0).json()["pipelines"]["shop"].clone()
    };
    assert_eq!(status("jobs"), status("restored"));
    assert_eq!(status("jobs")["dead"], 1);
}
