//! Every command beside the routes of the API: what can be typed can be asked for over HTTP, under the same names. A command or a flag
//! that is new belongs into these tables, or to a route.

use std::collections::BTreeSet;

use clap::CommandFactory;
use serde_json::Value;

use super::Cli;

/// The routes by which each command is asked of a server.
const ASKED: [(&str, &[&str]); 64] = [
    ("run", &["POST /jobs", "POST /jobs/known", "POST /rounds", "POST /leases", "POST /leases/settle"]),
    ("push", &["POST /jobs", "POST /jobs/known", "POST /rounds"]),
    (
        "work",
        &["POST /leases", "POST /leases/renew", "POST /leases/settle", "POST /leases/give-up", "DELETE /workers/{id}"],
    ),
    ("status", &["GET /status", "GET /events"]),
    ("dead list", &["GET /letters"]),
    ("dead show", &["GET /letters/{id}"]),
    ("dead top", &["GET /letters/top"]),
    ("dead discard", &["POST /letters/discard"]),
    ("dead export", &["GET /letters", "GET /payloads/{id}/bytes"]),
    ("dead import", &["POST /letters/import"]),
    ("cause list", &["GET /causes"]),
    ("cause show", &["GET /causes/{id}"]),
    ("cause explain", &["GET /letters/{id}"]),
    ("cause assign", &["POST /causes/{id}/changes"]),
    ("cause note", &["POST /causes/{id}/changes"]),
    ("cause mute", &["POST /causes/{id}/changes"]),
    ("cause unmute", &["POST /causes/{id}/changes"]),
    ("cause resolve", &["POST /causes/{id}/changes"]),
    ("cause reopen", &["POST /causes/{id}/changes"]),
    ("cause merge", &["POST /causes/{id}/changes"]),
    ("cause split", &["POST /causes/{id}/changes"]),
    ("retry", &["POST /replays"]),
    ("replay plan", &["POST /replays/plan"]),
    ("replay try", &["POST /tries", "GET /tries", "POST /tries/{id}/cancel"]),
    ("replay start", &["POST /replays"]),
    ("replay list", &["GET /replays"]),
    ("replay show", &["GET /replays/{id}", "GET /replays/{id}/letters"]),
    ("replay watch", &["GET /replays/{id}", "GET /replays/{id}/waits"]),
    ("replay pause", &["POST /replays/{id}/pause"]),
    ("replay resume", &["POST /replays/{id}/resume"]),
    ("replay cancel", &["POST /replays/{id}/cancel"]),
    ("replay rate", &["POST /replays/{id}/rate"]),
    ("report", &["GET /reports"]),
    ("result export", &["GET /results"]),
    ("round list", &["GET /rounds"]),
    ("alert check", &["POST /alerts/check", "GET /alerts/preview"]),
    ("alert test", &["POST /alerts/test"]),
    ("alert list", &["GET /alerts"]),
    ("alert ack", &["POST /alerts/changes"]),
    ("alert snooze", &["POST /alerts/changes"]),
    ("alert wake", &["POST /alerts/changes"]),
    ("alert assign", &["POST /alerts/changes"]),
    ("job list", &["GET /jobs"]),
    ("job show", &["GET /jobs/{id}"]),
    ("job cancel", &["POST /jobs/cancel"]),
    ("payload list", &["GET /payloads"]),
    ("payload show", &["GET /payloads/{id}", "GET /payloads/{id}/bytes"]),
    ("payload open", &["GET /payloads/{id}/bytes"]),
    ("payload verify", &["POST /payloads/verify"]),
    ("payload gc", &["POST /payloads/gc"]),
    ("activity", &["GET /activity"]),
    ("breaker list", &["GET /breakers"]),
    ("breaker close", &["POST /breakers/close"]),
    ("breaker hold", &["POST /breakers/hold"]),
    ("breaker probe", &["POST /breakers/probe"]),
    ("pipeline list", &["GET /pipelines"]),
    ("pipeline show", &["GET /pipelines/{name}", "GET /pipelines/{name}/definition"]),
    ("pipeline pause", &["POST /pipelines/{name}/pause"]),
    ("pipeline resume", &["POST /pipelines/{name}/resume"]),
    ("pipeline forget", &["POST /pipelines/{name}/forget"]),
    ("token create", &["POST /tokens"]),
    ("token list", &["GET /tokens"]),
    ("token revoke", &["DELETE /tokens/{name}"]),
    ("audit", &["GET /audit"]),
];

/// Commands that are done where the store is, or need neither store nor server.
const HERE: [(&str, &str); 12] = [
    ("demo", "it makes a store of its own"),
    ("init", "it writes a file"),
    ("serve", "it is the server"),
    ("store copy", "it needs both stores"),
    ("store migrate", "it is done to the store itself"),
    ("backup", "it reads the store's file"),
    ("restore", "it makes a store"),
    ("token reset", "whoever has the store may: nobody has a token any more"),
    ("doctor", "of a server it says whether it answers; --compact is done to the file"),
    ("codes", "it prints tables of this program"),
    ("completions", "it prints a script"),
    ("complete", "it lists what other commands list"),
];

/// Started by redrive itself.
const OWN: [&str; 1] = ["isolated-job"];

/// Flags that no route has under their name, and why; `*` stands for every command.
const OTHERWISE: [(&str, &[&str], &str); 19] = [
    ("*", &["json", "csv", "html", "out", "meta", "curl", "har", "warc", "bare"], "how what was found is written"),
    ("*", &["all"], "the pages are gone through, one after the other"),
    ("*", &["yes"], "a question to who types"),
    ("*", &["concurrency", "attempts", "backoff", "timeout", "memory", "persistent", "pure", "trust-stored"], WORKER),
    ("run", &["require-result", "retry-dead", "max-wait", "fail-over"], WORKER),
    ("work", &["drain", "max-wait"], WORKER),
    ("run", &["format", "strict", "limit", "again", "dry-run"], TASKS),
    ("push", &["format", "strict", "limit", "again", "dry-run"], TASKS),
    ("status", &["watch"], "GET /events says when to look again"),
    ("*", &["refetch"], "`from`, as is --saved"),
    ("retry", &["edit"], "`set`, as it was edited"),
    ("*", &["detach"], "who says nothing of what it `runs` leaves the work to others"),
    ("replay try", &["show"], "GET /tries"),
    ("replay try", &["why"], "nothing is settled: there is nothing to say why of"),
    ("replay show", &["letters"], "GET /replays/{id}/letters"),
    ("alert check", &["dry-run"], "GET /alerts/preview"),
    ("alert ack", &["undo"], "the verb `unacknowledge`"),
    ("cause explain", &["stdin"], "they are explained here"),
    ("dead import", &["field"], "`fields`, all at once"),
];
const WORKER: &str = "how the worker works that runs here";
const TASKS: &str = "how a file of tasks is read here; POST /jobs/known and POST /rounds do the rest";

/// Flags of other names, for the same reason.
const RENAMED: [(&str, &str, &str); 4] = [
    ("token create", "pipeline", "pipelines"),
    ("token create", "no-payloads", "payloads"),
    ("cause assign", "to", "owner"),
    ("alert assign", "to", "owner"),
];

/// Routes that no command needs.
const PROGRAMS: [(&str, &str); 15] = [
    ("GET /openapi.json", "the document of the API"),
    ("GET /whoami", "`doctor` of a server"),
    ("POST /letters", "for programs that run their tasks themselves"),
    ("POST /outcomes", "for programs that run their tasks themselves"),
    ("PUT /payloads/{id}", "for those, and for workers"),
    ("HEAD /payloads/{id}", "for those"),
    ("POST /leases/start", "for workers whose tasks share a process"),
    ("POST /leases/died", "for who watches over such workers"),
    ("POST /leases/progress", "for workers of submit-then-poll pipelines"),
    ("GET /tries/{id}", "how far a try is; `replay try` runs it itself"),
    ("GET /tries/{id}/letters", "what each letter came to; `replay try` sees that itself"),
    ("GET /alerts/past", "the dashboard's view of what rules would have done"),
    ("GET /causes/{id}/compare", "the dashboard's view beside a page that worked"),
    ("GET /causes/{id}/differences", "the dashboard's view of what letters have in common"),
    ("GET /jobs/{id}", "also what `retry` looks at"),
];

/// The commands that do something, with the names of their long flags.
fn commands() -> Vec<(String, Vec<String>)> {
    fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, Vec<String>)>) {
        let below: Vec<_> = command.get_subcommands().filter(|below| below.get_name() != "help").collect();
        for one in &below {
            walk(one, format!("{path} {}", one.get_name()).trim(), found);
        }
        if below.is_empty() {
            let own = command.get_arguments().filter(|arg| !arg.is_global_set());
            let flags = own.filter_map(|arg| arg.get_long()).filter(|name| !["help", "version"].contains(name));
            found.push((path.to_owned(), flags.map(str::to_owned).collect()));
        }
    }
    let mut found = Vec::new();
    walk(&Cli::command(), "", &mut found);
    found
}

fn document() -> &'static Value {
    redrive_server::openapi::document()
}

fn operation(route: &str) -> &'static Value {
    let (method, path) = route.split_once(' ').expect("a method and a path");
    let found = &document()["paths"][format!("/api/v1{path}")][method.to_ascii_lowercase()];
    assert!(found.is_object(), "{route} is no route");
    found
}

/// The names of what a route takes: in its query, and in its body however deep.
fn names(route: &str) -> BTreeSet<String> {
    let operation = operation(route);
    let params = operation["parameters"].as_array().expect("parameters").iter();
    let mut names: BTreeSet<String> = params.filter_map(|param| param["name"].as_str().map(str::to_owned)).collect();
    collect(&operation["requestBody"]["content"]["application/json"]["schema"], &mut names);
    names
}

fn collect(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(inside) => {
            if let Some(name) = inside.get("$ref").and_then(|name| name.as_str()?.rsplit('/').next()) {
                collect(&document()["components"]["schemas"][name], names);
            }
            if let Some(Value::Object(fields)) = inside.get("properties") {
                names.extend(fields.keys().cloned());
            }
            inside.values().for_each(|value| collect(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

#[test]
fn every_command_has_its_routes_or_a_reason_to_have_none() {
    let typed: BTreeSet<String> = commands().into_iter().map(|(command, _)| command).collect();
    let known = ASKED.iter().map(|(name, _)| *name).chain(HERE.iter().map(|(name, _)| *name)).chain(OWN);
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    assert_eq!(typed, known);
}

#[test]
fn every_flag_is_called_the_same_in_a_route() {
    let mut used = BTreeSet::new();
    for (command, flags) in commands() {
        let Some((_, routes)) = ASKED.iter().find(|(name, _)| *name == command) else { continue };
        let taken: BTreeSet<String> = routes.iter().flat_map(|route| names(route)).collect();
        for flag in flags.iter().filter(|flag| !taken.contains(&flag.replace('-', "_"))) {
            let renamed = RENAMED.iter().position(|(of, name, _)| *of == command && name == flag);
            let excused = OTHERWISE
                .iter()
                .position(|(of, names, _)| (*of == "*" || *of == command) && names.contains(&flag.as_str()));
            match (renamed, excused) {
                (Some(at), _) => {
                    assert!(taken.contains(RENAMED[at].2), "{command} --{flag}");
                    used.insert(format!("renamed {at}"));
                }
                (None, Some(at)) => drop(used.insert(format!("{at} {flag}"))),
                (None, None) => panic!("no route of `redrive {command}` takes {flag:?}: {taken:?}"),
            }
        }
    }
    let excuses = OTHERWISE.iter().enumerate().flat_map(|(at, (_, names, _))| names.iter().map(move |n| (at, *n)));
    let idle: Vec<_> = excuses.filter(|(at, name)| !used.contains(&format!("{at} {name}"))).collect();
    assert!(idle.is_empty(), "these need no excuse: {idle:?}");
    assert!((0..RENAMED.len()).all(|at| used.contains(&format!("renamed {at}"))), "{used:?}");
}

#[test]
fn every_route_is_of_use_to_a_command_or_for_programs_alone() {
    let of_commands: BTreeSet<&str> = ASKED.iter().flat_map(|(_, routes)| routes.iter().copied()).collect();
    let of_programs: BTreeSet<&str> = PROGRAMS.iter().map(|(route, _)| *route).collect();
    assert!(of_commands.iter().chain(&of_programs).all(|route| operation(route).is_object()));
    for route in redrive_server::all_routes() {
        let named = format!("{} {}", route.method, route.path);
        let known = of_commands.contains(named.as_str()) || of_programs.contains(named.as_str());
        assert!(known, "{named} is of no use to any command");
    }
}
