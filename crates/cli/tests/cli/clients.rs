//! Scripts that let the errors of well-known clients end them: the reason is known without a word of theirs.

use std::net::TcpListener;

use crate::harness::{DemoSite, Sandbox, tools};
use crate::ports::ClosedPort;

/// Runs one task through a script; gives its dead letter's reason and code.
fn reason_of(program: &str, name: &str, script: &str) -> (String, String) {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write(name, script);
    let mut command = sandbox.command();
    command.args(["run", "tasks.jsonl", "--attempts", "1", "--", program, name]);
    command.env("PYTHONPATH", tools().join("python")).env("NODE_PATH", tools().join("node/node_modules"));
    assert_eq!(command.output().expect("ran").status.code(), Some(3), "{script}");
    let letter = sandbox.dead().remove(0);
    let text = |field: &str| letter[field].as_str().unwrap_or_default().to_owned();
    assert!(!text("message").contains("Node.js v"), "the version is not what went wrong: {letter}");
    (text("reason"), text("code"))
}

/// A port on which nobody ever answers, with its address, and one on which nobody listens.
fn silent_and_closed() -> ((TcpListener, String), ClosedPort) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let late = format!("http://{}/", silent.local_addr().expect("an address"));
    ((silent, late), ClosedPort::reserve())
}

#[test]
fn the_errors_of_python_clients_have_their_reasons() {
    let ((_silent, late), port) = silent_and_closed();
    let closed = port.url("/");
    let reason = |script: String| reason_of("python3", "fetch.py", &script).0;
    assert_eq!(reason(format!("import requests\nrequests.get('{late}', timeout=0.2)\n")), "timeout");
    assert_eq!(reason(format!("import requests\nrequests.get('{closed}', timeout=5)\n")), "network");
    assert_eq!(reason("import requests\nrequests.get('nonsense')\n".into()), "rejected_input");
    assert_eq!(reason(format!("import urllib.request as u\nu.urlopen('{late}', timeout=0.2)\n")), "timeout");
    assert_eq!(reason("import socket\nsocket.getaddrinfo('no-such-host.invalid', 80)\n".into()), "dns");
    assert_eq!(reason("raise KeyError('price')\n".into()), "handler_error");
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    let missing = site.url("no-such-page");
    assert_eq!(reason(format!("import requests\nrequests.get('{missing}').raise_for_status()\n")), "not_found");
    assert_eq!(reason(format!("import urllib.request as u\nu.urlopen('{missing}')\n")), "not_found");
}

#[test]
fn the_errors_of_node_clients_have_their_reasons() {
    let ((_silent, late), port) = silent_and_closed();
    let closed = port.url("/");
    let end = |script: String| reason_of("node", "fetch.js", &script);
    let axios = |url: &str| end(format!("require('axios').get('{url}', {{timeout: 200}});\n"));
    assert_eq!(axios(&late), ("timeout".into(), "ECONNABORTED".into()));
    assert_eq!(axios(&closed), ("network".into(), "ECONNREFUSED".into()));
    assert_eq!(end(format!("require('http').get('{closed}');\n")).0, "network");
    assert_eq!(end(format!("fetch('{late}', {{signal: AbortSignal.timeout(200)}});\n")).0, "timeout");
    assert_eq!(end("new URL('nonsense');\n".into()).0, "rejected_input");
    assert_eq!(end("null.price;\n".into()).0, "handler_error");
}
