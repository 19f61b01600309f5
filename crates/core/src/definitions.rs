//! Definitions: what a pipeline effectively is, and the version by which two of them are told apart.
//!
//! The version is a hash of what decides outcomes: the handler and all that it is made of. How many jobs run at once, how fast,
//! how long letters are kept and where results go is not part of it. Secrets are not either: a variable counts by its name.

mod commands;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::commands::{CommandOf, KeptCommand, command_of};
use crate::ids::PipelineName;
use crate::secrets::{Secrets, is_path};
use crate::workers::Runs;

/// Digits of a version.
const DIGITS: usize = 12;

/// Keys of a pipeline's section that decide when, how often and where to, but not what comes of a job.
const ASIDE: &[&str] = &[
    "auto_replay",
    "breaker",
    "concurrency",
    "crashes",
    "history",
    "input_max",
    "keep_results",
    "kept_results_max",
    "key",
    "lease",
    "letters_max",
    "max_queued",
    "out",
    "payload",
    "payload_max",
    "payload_required",
    "good_pages",
    "retention",
    "retry",
    "secret_names",
    "track",
];

/// The same, of how requests are sent.
const HTTP_ASIDE: &[&str] = &["per_second", "per_target", "secret_names"];

/// Stands for a secret that is written where it should be a reference.
const MASK: &str = "***";

/// The version of a pipeline's definition: a short hash of all that decides outcomes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DefinitionVersion(String);

impl DefinitionVersion {
    /// The version with this text, as it is kept.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// As it is kept and shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DefinitionVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a pipeline effectively is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// Its version.
    pub version: DefinitionVersion,
    /// What it says, for people: JSON with sorted keys, secrets as references.
    pub text: String,
    /// The command that was given in place of what the configuration says, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<KeptCommand>,
    /// The file that results went to when it was last worked on with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<ResultsFile>,
}

impl Definition {
    /// A definition of which only the version is known.
    pub const fn of_version(version: DefinitionVersion) -> Self {
        Self { version, text: String::new(), command: None, results: None }
    }
}

/// The file that results of a pipeline are appended to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ResultsFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// Whether only the result is written of each job, without what it was about.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
}

/// Finds the files that results of jobs went to that were last tried with these versions, of what is kept of each version.
pub fn results_of(
    versions: &[Option<DefinitionVersion>],
    kept: impl IntoIterator<Item = (DefinitionVersion, ResultsFile)>,
) -> BTreeSet<ResultsFile> {
    let meant = |version: &DefinitionVersion| versions.iter().flatten().any(|wanted| wanted == version);
    kept.into_iter().filter(|(version, _)| meant(version)).map(|(_, file)| file).collect()
}

/// The versions that the pipelines of a replay are to have. One that is not named may have any.
pub type Pins = BTreeMap<PipelineName, DefinitionVersion>;

/// Pipelines that wait for a worker, with the version that it must have: none of those that are there has it.
pub fn awaited<'a>(pins: &Pins, runs: impl Iterator<Item = &'a Runs> + Clone) -> Pins {
    let has = |name: &PipelineName, version: &DefinitionVersion| {
        runs.clone().any(|runs| runs.pipeline == *name && runs.definition.as_ref() == Some(version))
    };
    let missing = pins.iter().filter(|(name, version)| !has(name, version));
    missing.map(|(name, version)| (name.clone(), version.clone())).collect()
}

/// Whether a worker's version of a pipeline is the one that is asked for. Where none is asked for, any is.
pub fn fits(wanted: Option<&DefinitionVersion>, has: Option<&DefinitionVersion>) -> bool {
    wanted.is_none() || wanted == has
}

/// The definition of a pipeline: its section of the configuration, and the contents of the files that the section names, by their
/// paths.
pub fn define(section: &Value, files: &BTreeMap<String, String>, secrets: &Secrets) -> Definition {
    let mut section = section.clone();
    if let Value::Object(keys) = &mut section {
        keys.retain(|key, _| !ASIDE.contains(&key.as_str()));
        reduce(keys);
    }
    let hash = |text: &String| Value::from(digits(text));
    let files: Map<String, Value> = files.iter().map(|(path, text)| (path.clone(), hash(text))).collect();
    let whole = sorted(&json!({"files": files, "pipeline": without_secrets(&section, secrets)}));
    // People see less than what is hashed: what only looks like a secret may be a selector.
    let mut shown = whole.clone();
    secrets.mask_json(&mut shown);
    restore_references(&mut shown, &whole);
    if let Some(command) = shown["pipeline"].get_mut("command") {
        shorten_command(command, secrets);
    }
    Definition {
        version: DefinitionVersion(digits(&whole.to_string())),
        text: format!("{shown:#}"),
        command: None,
        results: None,
    }
}

/// A pipeline's section as people may see it, whole: of secrets and variables only what they are taken from.
pub fn shown(section: &Value, secrets: &Secrets) -> Value {
    let mut whole = without_secrets(section, secrets);
    if let Some(Value::Object(variables)) = whole.get_mut("env") {
        let values =
            variables.values_mut().filter_map(|value| if let Value::String(text) = value { Some(text) } else { None });
        values.for_each(|text| *text = references(text));
    }
    let mut shown = whole.clone();
    secrets.mask_json(&mut shown);
    restore_references(&mut shown, &whole);
    shown
}

fn digits(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..DIGITS].to_owned()
}

/// Leaves of variables and proxies only what they are called.
fn reduce(section: &mut Map<String, Value>) {
    if let Some(Value::Object(variables)) = section.get_mut("env") {
        let names: Vec<_> = variables.keys().cloned().collect();
        section["env"] = names.into();
        sort_list(&mut section["env"]);
    }
    if let Some(Value::Object(http)) = section.get_mut("http") {
        http.retain(|key, _| !HTTP_ASIDE.contains(&key.as_str()));
        if let Some(Value::Array(proxies)) = http.get_mut("proxies") {
            proxies.iter_mut().for_each(|proxy| *proxy = proxy["label"].take());
        }
        if http.is_empty() {
            section.remove("http");
        }
    }
}

fn sort_list(list: &mut Value) {
    if let Value::Array(items) = list {
        items.sort_by_key(ToString::to_string);
    }
}

/// The same without values that go under a secret name, unless they are references.
fn without_secrets(value: &Value, secrets: &Secrets) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| without_secrets(item, secrets)).collect(),
        Value::Object(fields) => {
            let field = |(name, field): (&String, &Value)| match (secrets.is_secret_name(name), field) {
                (true, Value::String(text)) => (name.clone(), Value::from(references(text))),
                _ => (name.clone(), without_secrets(field, secrets)),
            };
            fields.iter().map(field).collect()
        }
        other => other.clone(),
    }
}

/// What a text takes from outside; what is written beside that is not told.
fn references(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some((_, inside)) = rest.split_once("${") {
        let Some((place, after)) = inside.split_once('}') else { break };
        found += &format!("${{{place}}}");
        rest = after;
    }
    if found.is_empty() { MASK.to_owned() } else { found }
}

/// Whether a text is one reference and nothing else.
fn is_reference(text: &str) -> bool {
    let inside = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
    inside.is_some_and(|inside| !inside.contains(['$', '{', '}']))
}

/// Shows of a command only what is no secret for certain.
fn shorten_command(command: &mut Value, secrets: &Secrets) {
    match command {
        Value::String(line) => {
            let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            *line =
                secrets.mask_words(&words).into_iter().take(1).chain([MASK.to_owned()]).collect::<Vec<_>>().join(" ");
        }
        Value::Array(words) => {
            let text = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            let words: Vec<_> = words.iter().map(text).collect();
            *command = shortened(secrets.mask_words(&words)).into();
        }
        _ => {}
    }
}

/// The program, the names of flags, and paths: of what is left once secrets are masked, all that is worth showing.
fn shortened(mut words: Vec<String>) -> Vec<String> {
    let mut after_flag = false;
    for text in words.iter_mut().skip(1) {
        let flag = text.starts_with('-');
        let value_of_flag = std::mem::replace(&mut after_flag, flag && !text.contains('='));
        match text.split_once('=') {
            Some((name, _)) if flag => *text = format!("{name}={MASK}"),
            _ if flag || (!value_of_flag && is_path(text)) => {}
            _ => *text = MASK.to_owned(),
        }
    }
    words
}

/// Shows references where masking took them for secrets.
fn restore_references(shown: &mut Value, whole: &Value) {
    match (shown, whole) {
        (Value::String(shown), Value::String(text)) if is_reference(text) => shown.clone_from(text),
        (Value::Array(shown), Value::Array(whole)) => {
            shown.iter_mut().zip(whole).for_each(|(shown, whole)| restore_references(shown, whole));
        }
        (Value::Object(shown), Value::Object(whole)) => {
            shown.iter_mut().zip(whole).for_each(|((_, shown), (_, whole))| restore_references(shown, whole));
        }
        _ => {}
    }
}

/// The same with all keys in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let ordered: BTreeMap<_, _> = fields.iter().map(|(name, field)| (name.clone(), sorted(field))).collect();
            Value::Object(ordered.into_iter().collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(section: &Value) -> DefinitionVersion {
        define(section, &BTreeMap::new(), &Secrets::default()).version
    }

    fn section() -> Value {
        json!({
            "handler": "http", "concurrency": 4, "schema": "product.json",
            "request": {"url": "{url}", "headers": {"authorization": "Bearer ${env:TOKEN}", "accept": "*/*"}},
            "extract": {"price": {"css": ".price::text", "required": true}},
            "http": {"per_second": 2.0, "redirects": 3, "proxies": [{"label": "p1", "url": "http://me:pw@p.lan:1"}]},
            "env": {"B": "2", "A": "s3cr3t"},
            "rule": [{"status": [403], "reason": "blocked"}],
        })
    }

    fn with(path: &str, value: Value) -> Value {
        let mut section = section();
        *section.pointer_mut(path).expect("a place") = value;
        section
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let turned = json!({
            "rule": [{"reason": "blocked", "status": [403]}],
            "env": {"A": "s3cr3t", "B": "2"},
            "http": {"proxies": [{"url": "http://me:pw@p.lan:1", "label": "p1"}], "redirects": 3, "per_second": 2.0},
            "extract": {"price": {"required": true, "css": ".price::text"}},
            "request": {"headers": {"accept": "*/*", "authorization": "Bearer ${env:TOKEN}"}, "url": "{url}"},
            "schema": "product.json", "concurrency": 4, "handler": "http",
        });
        assert_eq!(version(&section()), version(&turned));
        assert_eq!(version(&section()).as_str().len(), DIGITS);
    }

    #[test]
    fn what_decides_outcomes_makes_another_version() {
        let changed = [
            with("/extract/price/css", json!(".cost::text")),
            with("/handler", json!("exec")),
            with("/request/url", json!("https://shop.example/{id}")),
            with("/rule/0/reason", json!("timeout")),
            with("/http/redirects", json!(4)),
            with("/env", json!({"A": "s3cr3t", "C": "2"})),
            with("/request/headers/authorization", json!("Bearer ${env:OTHER}")),
        ];
        for changed in changed {
            assert_ne!(version(&section()), version(&changed), "{changed}");
        }
    }

    #[test]
    fn what_decides_only_when_and_how_much_does_not() {
        let same = [
            with("/concurrency", json!(64)),
            with("/http/per_second", json!(9.5)),
            with("/env/A", json!("another secret")),
            with("/http/proxies/0/url", json!("http://p.lan:2")),
        ];
        for same in same {
            assert_eq!(version(&section()), version(&same), "{same}");
        }
        let mut more = section();
        for key in ASIDE {
            more[*key] = json!("anything");
        }
        assert_eq!(version(&section()), version(&more));
    }

    #[test]
    fn the_contents_of_files_count() {
        let with_schema = |text: &str| {
            let files = BTreeMap::from([("product.json".to_owned(), text.to_owned())]);
            define(&section(), &files, &Secrets::default()).version
        };
        assert_eq!(with_schema("{}"), with_schema("{}"));
        assert_ne!(with_schema("{}"), with_schema("{\"type\": \"object\"}"));
    }

    #[test]
    fn secrets_are_shown_as_references() {
        let mut section = section();
        section["request"]["headers"]["x-api-key"] = json!("written-here");
        let text = define(&section, &BTreeMap::new(), &Secrets::default()).text;
        assert!(text.contains("${env:TOKEN}") && text.contains("***") && text.contains(".price::text"), "{text}");
        for secret in ["s3cr3t", "written-here", "me:pw", "Bearer"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }

    #[test]
    fn secrets_of_commands_and_beside_references_are_not_shown() {
        let shown = |section: Value| define(&section, &BTreeMap::new(), &Secrets::default()).text;
        let command = [
            "./solve.py",
            "in/list.csv",
            "sk-live-1",
            "--api-key",
            "sk-live-2",
            "--t=sk-live-3",
            "-u",
            "me:pw.x",
            "--password",
            "-sk-live-4",
        ];
        let text = shown(json!({ "command": command }));
        assert!(text.contains("./solve.py") && text.contains("in/list.csv") && text.contains("--api-key"), "{text}");
        assert!(!text.contains("sk-live") && !text.contains("me:pw"), "{text}");
        let text = shown(json!({"request": {"url": "${env:BASE}/in.php?key=LITERAL&id={id}"}}));
        assert!(!text.contains("LITERAL"), "{text}");
        let other =
            |word: &str| define(&json!({"command": ["a", word]}), &BTreeMap::new(), &Secrets::default()).version;
        assert_ne!(other("x"), other("y"), "what is not shown counts");
    }

    #[test]
    fn what_nobody_runs_is_awaited() {
        use crate::workers::TakesReplays;

        let name = |name: &str| name.parse::<PipelineName>().expect("a name");
        let runs = |pipeline: &str, version: Option<&str>| Runs {
            pipeline: name(pipeline),
            definition: version.map(DefinitionVersion::new),
            waits_forever: false,
            replays: TakesReplays::default(),
        };
        let pins = Pins::from([(name("a"), DefinitionVersion::new("1")), (name("b"), DefinitionVersion::new("2"))]);
        let there = [runs("a", Some("1")), runs("b", Some("1")), runs("b", None)];
        assert_eq!(awaited(&pins, there.iter()), Pins::from([(name("b"), DefinitionVersion::new("2"))]));
        assert_eq!(awaited(&pins, [].iter()), pins);
        assert_eq!(awaited(&Pins::new(), [].iter()), Pins::new());
    }

    #[test]
    fn where_no_version_is_asked_for_any_fits() {
        let (one, other) = (DefinitionVersion::new("a"), DefinitionVersion::new("b"));
        assert!(fits(None, None) && fits(None, Some(&one)) && fits(Some(&one), Some(&one)));
        assert!(!fits(Some(&one), Some(&other)) && !fits(Some(&one), None));
    }
}
