//! A page in a real browser outlives its server: killed, numbers are stale; back again, they are live.

use crate::dashboard_commands::{browser, unset};
use crate::harness::{Ran, Sandbox};
use crate::network::Serving;
use crate::served::local;

#[test]
fn a_page_says_that_its_server_was_killed_and_is_live_when_it_is_back() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    let mut node = browser("killed.mjs");
    node.arg(serving.url()).arg(serving.pid().to_string()).arg(env!("CARGO_BIN_EXE_redrive"));
    node.env("LOCAL", local(&serving.address)).env("XDG_STATE_HOME", sandbox.path("state"));
    Ran::of(unset(&mut node).current_dir(sandbox.path("")).output().expect("node runs")).expect(0);
    sandbox.assert_sound();
}
