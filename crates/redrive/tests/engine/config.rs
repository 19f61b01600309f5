//! What the configuration makes: which store, which pipelines, and what is refused.

use std::path::{Path, PathBuf};

use redrive::config::{Config, ConfigError, DEFAULT_STORE, Overrides, Setting};
use redrive_core::ids::PipelineName;

const TWO: &str = "[pipeline.catalog]\ncommand = [\"cat\"]\nconcurrency = 3\n[pipeline.prices]\ncommand = [\"cat\"]\n";

fn setting(text: &str, store: Option<&str>) -> Setting {
    let config = Config::parse(text, Path::new("redrive.toml")).expect("a configuration");
    Setting::of(config, store).expect("a setting")
}

fn name(text: &str) -> PipelineName {
    text.parse().expect("a name")
}

#[test]
fn a_store_that_is_named_comes_before_that_of_the_file_and_that_before_the_default() {
    assert_eq!(setting("", None).location.to_string(), DEFAULT_STORE);
    assert_eq!(setting("store = \"sqlite:a.db\"", None).location.to_string(), "sqlite:a.db");
    assert_eq!(setting("store = \"sqlite:a.db\"", Some("memory:")).location.to_string(), "memory:");
    let config = Config::parse("store = \"nowhere\"", Path::new("redrive.toml")).expect("a configuration");
    assert!(matches!(Setting::of(config, None), Err(ConfigError::Location(_))));
}

#[test]
fn the_one_pipeline_that_is_meant_is_the_named_one_the_only_one_or_the_default() {
    let (none, two) = (setting("", None), setting(TWO, None));
    let one = setting("[pipeline.catalog]\ncommand = [\"cat\"]\n", None);
    let meant = |setting: &Setting, named: &[&str], own| {
        let named: Vec<_> = named.iter().map(|text| name(text)).collect();
        setting.pipeline_name(&named, own)
    };
    assert_eq!(meant(&none, &[], false).ok(), Some(name("default")));
    assert_eq!(meant(&one, &[], false).ok(), Some(name("catalog")));
    assert_eq!(meant(&one, &[], true).ok(), Some(name("default")), "a command of one's own is no pipeline of the file");
    assert_eq!(meant(&two, &["prices"], false).ok(), Some(name("prices")));
    assert!(matches!(meant(&two, &["a", "b"], false), Err(ConfigError::SeveralNamed)));
    let unnamed = meant(&two, &[], false);
    assert!(matches!(&unnamed, Err(ConfigError::NoneNamed { known }) if *known == [name("catalog"), name("prices")]));
}

#[test]
fn pipelines_are_those_that_are_named_or_all_of_the_file() {
    let two = setting(TWO, None);
    let names = |named: &[PipelineName]| -> Vec<String> {
        let pipelines = two.pipelines(named, &Overrides::default()).expect("pipelines");
        pipelines.into_iter().map(|(pipeline, _)| pipeline.name().to_string()).collect()
    };
    assert_eq!(names(&[]), ["catalog", "prices"]);
    assert_eq!(names(&[name("prices")]), ["prices"]);
    let none = setting("", None);
    assert!(matches!(none.pipelines(&[], &Overrides::default()), Err(ConfigError::NothingToRun)));
    let unknown = two.pipeline(name("other"), &Overrides::default()).map(|_| ());
    assert!(matches!(unknown, Err(ConfigError::NoCommand { known, .. }) if known.len() == 2));
    let own = Overrides { command: vec!["cat".into()], attempts: Some(9), ..Overrides::default() };
    let (pipeline, _) = none.pipeline(name("other"), &own).expect("a pipeline");
    assert_eq!(pipeline.policy().retry.attempts_max, 9);
    let lost = Overrides { command: vec!["/no/such/command".into()], ..Overrides::default() };
    assert!(matches!(none.pipeline(name("other"), &lost).map(|_| ()), Err(ConfigError::Pipeline { .. })));
}

#[test]
fn results_are_not_written_into_the_store() {
    let setting = setting("", Some("sqlite:some.db"));
    for file in ["some.db", "./some.db", "some.db-wal"] {
        assert!(matches!(setting.results(Some(file.into())), Err(ConfigError::ResultsInStore(_))), "{file}");
    }
    assert_eq!(setting.results(Some("out.jsonl".into())).ok(), Some(Some(PathBuf::from("out.jsonl"))));
}
