//! `redrive` as a black box: the real binary, real processes, real files, real kills.

mod bad_input;
mod cause;
mod clients;
mod dead;
mod disk;
mod docs;
mod exec;
mod extraction;
mod guide;
mod harness;
mod hostile_pages;
mod hostile_text;
mod http;
mod import;
mod job;
mod killed;
mod pages;
mod payload;
mod payload_file;
mod poison;
mod proxies;
mod read_only;
#[path = "../../../redrive/tests/support/servers/mod.rs"]
mod real;
mod replay;
mod report;
mod results;
mod run;
mod scripted;
mod servers;
mod solver;
mod submit_poll;
mod suspects;
mod tries;
mod vault;
mod work;
