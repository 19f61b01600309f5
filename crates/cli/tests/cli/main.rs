//! `redrive` as a black box: the real binary, real processes, real files, real kills.

mod activity;
mod alert;
mod backup;
mod bad_input;
mod breaker;
mod cause;
mod clients;
mod codes;
mod dead;
mod definition;
mod disk;
mod docs;
mod exec;
mod extraction;
mod guide;
mod hand_on;
mod harness;
mod hostile_pages;
mod hostile_text;
mod http;
mod import;
mod job;
mod killed;
mod log;
mod pages;
mod payload;
mod payload_file;
mod pipeline;
mod poison;
mod polling_guide;
#[allow(dead_code, reason = "another test binary needs the rest")]
#[path = "../../../redrive/tests/support/misbehaving/ports.rs"]
mod ports;
mod postgres;
#[path = "../../../store/tests/support/server.rs"]
mod postgres_server;
mod proxies;
mod pty;
mod read_only;
#[path = "../../../redrive/tests/support/servers/mod.rs"]
mod real;
mod recipes;
mod replay;
mod replay_steps;
mod report;
mod results;
mod retry;
mod round;
mod run;
mod run_end;
mod scripted;
mod serve;
mod servers;
mod solver;
mod status;
mod stores_guide;
mod submit_poll;
mod suspects;
mod tables;
mod tasks;
mod terminal;
mod token;
mod tries;
mod vault;
mod work;
