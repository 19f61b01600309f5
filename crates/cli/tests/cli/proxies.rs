//! Several proxies: one that is blocked, or dead, does not bury the jobs that took it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::Sandbox;
use crate::ports::ClosedPort;
use crate::scripted::Scripted;

/// A proxy that answers every request with a status.
fn proxy(status: u16) -> Scripted {
    Scripted::start(move |_| (status, "{\"ok\": true}".into()))
}

/// A sandbox whose jobs go through proxies, and so many jobs, each with a page of its own.
fn sandbox(proxies: &[(&str, &str)], options: &str, jobs: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    let proxies: Vec<String> = proxies
        .iter()
        .map(|(label, address)| format!("{{ label = \"{label}\", url = \"http://{address}\" }}"))
        .collect();
    let config = format!(
        "[pipeline.shop]\nhandler = \"http\"\nconcurrency = 1\n[pipeline.shop.retry]\nbase = \"10ms\"\n\
         [pipeline.shop.http]\nproxies = [{}]\n{options}\n",
        proxies.join(", ")
    );
    sandbox.write("redrive.toml", config);
    let tasks: String = (0..jobs).map(|n| format!("{{\"url\":\"http://shop.example/{n}\"}}\n")).collect();
    sandbox.write("tasks.jsonl", tasks);
    sandbox
}

/// The proxies through which a letter failed, in order.
fn labels(letter: &Value) -> Vec<&str> {
    letter["failures"].as_array().expect("failures").iter().filter_map(|failure| failure["proxy"].as_str()).collect()
}

#[test]
fn a_job_that_one_proxy_blocks_goes_on_through_another() {
    for blocked in [401, 403, 407, 451] {
        let (bad, good) = (proxy(blocked), proxy(200));
        let sandbox = sandbox(&[("bad", &bad.address), ("good", &good.address)], "", 6);
        let ran = sandbox.redrive("run tasks.jsonl").expect(0);
        assert_eq!(ran.json_lines().len(), 6, "{blocked}");
        let asked: Vec<String> = bad.asked().into_iter().map(|asked| asked.path).collect();
        assert_eq!(asked.len(), asked.iter().collect::<BTreeSet<_>>().len(), "no job took it twice: {asked:?}");
        assert!(!asked.is_empty());
        sandbox.assert_sound();
    }
}

#[test]
fn a_job_goes_on_where_a_proxy_cannot_be_reached_or_shows_a_challenge() {
    let good = proxy(200);
    let port = ClosedPort::reserve();
    let closed = port.url("").trim_start_matches("http://").to_owned();
    let wall = Scripted::start(|_| (200, "<title>Just a moment...</title>".into()));
    let proxies = [("closed", closed.as_str()), ("wall", &wall.address), ("good", &good.address)];
    let sandbox = sandbox(&proxies, "", 6);
    assert_eq!(sandbox.redrive("run tasks.jsonl").expect(0).json_lines().len(), 6);
    sandbox.assert_sound();
}

#[test]
fn a_job_that_every_proxy_blocks_is_dead_as_blocked() {
    let walls: Vec<Scripted> = (0..4).map(|_| proxy(403)).collect();
    let proxies: Vec<(&str, &str)> =
        ["a", "b", "c", "d"].into_iter().zip(walls.iter().map(|wall| &*wall.address)).collect();
    for (options, tried) in [("", 3), ("proxies_max = 2", 2), ("proxies_max = 1", 1)] {
        let before: usize = walls.iter().map(|wall| wall.asked().len()).sum();
        let sandbox = sandbox(&proxies, options, 1);
        sandbox.redrive("run tasks.jsonl").expect(3);
        let letter = &sandbox.dead()[0];
        assert_eq!((&letter["reason"], letter["attempts"].as_u64()), (&"blocked".into(), Some(tried)), "{options}");
        assert_eq!(letter["gate"], "review");
        assert_eq!(labels(letter).iter().collect::<BTreeSet<_>>().len() as u64, tried, "{options}: each another one");
        let asked: usize = walls.iter().map(|wall| wall.asked().len()).sum();
        assert_eq!((asked - before) as u64, tried, "{options}");
        sandbox.assert_sound();
    }
}

/// The attempts of one job are one word about its target: four jobs are no reason to hold it, through however many proxies.
#[test]
fn a_breaker_counts_a_job_once_through_however_many_proxies() {
    let walls: Vec<Scripted> = (0..3).map(|_| proxy(403)).collect();
    let proxies: Vec<(&str, &str)> = ["a", "b", "c"].into_iter().zip(walls.iter().map(|wall| &*wall.address)).collect();
    let sandbox = sandbox(&proxies, "", 4);
    sandbox.redrive("run tasks.jsonl").expect(3);
    assert_eq!(sandbox.dead().len(), 4);
    let status = sandbox.redrive("status --json").expect(0).json();
    let breakers = status["breakers"].as_array().expect("an array, as it is where one is open");
    assert!(breakers.iter().all(|breaker| breaker["state"] != "open"), "{breakers:?}");
}

#[test]
fn a_replay_takes_first_the_proxy_that_the_job_has_not_tried() {
    let walls: Vec<Scripted> = (0..3).map(|_| proxy(403)).collect();
    let proxies: Vec<(&str, &str)> = ["a", "b", "c"].into_iter().zip(walls.iter().map(|wall| &*wall.address)).collect();
    let sandbox = sandbox(&proxies, "proxies_max = 2", 1);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.redrive("replay start --pipeline shop");
    let letter = &sandbox.dead()[0];
    let tried = labels(letter);
    assert_eq!((tried.len(), &letter["replays"]), (4, &1.into()), "two in the run and two in the replay: {tried:?}");
    assert_eq!(tried[..3].iter().collect::<BTreeSet<_>>().len(), 3, "none twice while another is left: {tried:?}");
    assert_ne!(tried[2], tried[3], "{tried:?}");
    sandbox.assert_sound();
}
