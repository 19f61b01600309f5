//! Following the configuration: what was read is read again when it changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redrive_core::secrets::Secrets;

use super::{Config, ConfigError, Setting};
use crate::pipeline::Pipeline;
use crate::worker::reload::{Reread, Source};

/// What files had in them: a hash, or nothing if they could not be read.
type Contents = BTreeMap<PathBuf, Option<blake3::Hash>>;

/// Makes pipelines of a setting that was read.
type Assemble = Box<dyn Fn(&Setting) -> Result<Vec<Pipeline>, String> + Send>;

/// A configuration file, and the schemas and code tables that it names, which are looked at again and again.
pub struct Followed {
    path: PathBuf,
    assemble: Assemble,
    /// What the pipelines at work were made of, or what was refused last.
    taken: Contents,
    /// What was seen last, if it is other than that. A file that is being written is not taken up: it must be the same twice.
    seen: Option<Contents>,
}

impl Followed {
    /// Follows the file that a setting was read from; nothing if it was not read from one. To be asked for before pipelines are
    /// made of the setting, so that no change of a file that they name is missed.
    pub fn new(
        setting: &Setting,
        assemble: impl Fn(&Setting) -> Result<Vec<Pipeline>, String> + Send + 'static,
    ) -> Option<Self> {
        let path = setting.config.path.clone()?;
        let taken = contents(&path, &setting.config);
        Some(Self { path, assemble: Box::new(assemble), taken, seen: None })
    }

    fn reread(&mut self) -> Reread {
        // It is told in logs: values that stand in the file do not belong there.
        let setting = self.setting().map_err(|error| error.without_values())?;
        // A schema that was not named before is looked at from now on. It is read after it was looked at: what changes in between
        // is seen the next time.
        self.taken = contents(&self.path, &setting.config);
        (self.assemble)(&setting).map_err(|why| Secrets::default().mask(&why))
    }

    fn setting(&self) -> Result<Setting, ConfigError> {
        // Where the store is does not change while it is open.
        Setting::of(Config::load(Some(&self.path))?, None)
    }
}

impl Source for Followed {
    fn changed(&mut self) -> Option<Reread> {
        let now: Contents = self.taken.keys().map(|path| (path.clone(), hash(path))).collect();
        if now == self.taken {
            self.seen = None;
            return None;
        }
        if self.seen.as_ref() != Some(&now) {
            self.seen = Some(now);
            return None;
        }
        self.seen = None;
        self.taken = now;
        Some(self.reread())
    }
}

/// The files that a configuration is made of, and what is in them: in its own what was there when it was read.
fn contents(path: &Path, config: &Config) -> Contents {
    let named = config.pipeline.values().flat_map(|pipeline| pipeline.files());
    let own = (path.to_owned(), Some(blake3::hash(config.text.as_bytes())));
    named.map(|path| (path.clone(), hash(&path))).chain([own]).collect()
}

fn hash(path: &Path) -> Option<blake3::Hash> {
    Some(blake3::hash(&std::fs::read(path).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[pipeline.p]\nhandler = \"http\"\nschema = \"SCHEMA\"\n";

    /// Changes are seen once, when the file has come to rest; so are mistakes, and then the old one stays.
    #[test]
    #[cfg_attr(not(feature = "json-schema"), ignore = "needs the feature json-schema")]
    fn what_changed_is_told_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, schema) = (folder.path().join("redrive.toml"), folder.path().join("schema.json"));
        let good = GOOD.replace("SCHEMA", &schema.display().to_string());
        std::fs::write(&schema, "{}").expect("written");
        std::fs::write(&path, &good).expect("written");
        let setting = Setting::load(Some(&path), Some("memory:")).expect("read");
        let made = |setting: &Setting| {
            let made =
                setting.pipelines(&[], &super::super::Overrides::default()).map_err(|error| error.to_string())?;
            Ok(made.into_iter().map(|(pipeline, _)| pipeline).collect::<Vec<_>>())
        };
        let before = made(&setting).expect("made").remove(0);
        let mut followed = Followed::new(&setting, made).expect("a file");
        let mut version = || loop {
            if let Some(changed) = followed.changed() {
                break changed.map(|pipelines: Vec<Pipeline>| pipelines[0].definition().cloned());
            }
        };
        std::fs::write(&schema, "{\"type\": \"object\"}").expect("written");
        let after = version().expect("taken up");
        assert_ne!(after.as_ref(), before.definition());
        std::fs::write(&path, "[pipeline.p]\nhandlr = 1\n").expect("written");
        assert!(version().is_err_and(|why| why.contains("handlr")), "it is told");
        assert!((0..9).all(|_| followed.changed().is_none()), "once");
        std::fs::write(&path, good + "concurrency = 9\n").expect("written");
        let mut again = || loop {
            if let Some(changed) = followed.changed() {
                break changed.expect("taken up").remove(0).definition().cloned();
            }
        };
        assert_eq!(again(), after, "how many run at once is no other version");
    }

    fn none(_: &Setting) -> Result<Vec<Pipeline>, String> {
        Ok(Vec::new())
    }

    #[test]
    fn what_changes_while_it_is_read_is_not_missed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("redrive.toml");
        std::fs::write(&path, "[pipeline.p]\ncommand = [\"a\"]\n").expect("written");
        let setting = Setting::load(Some(&path), Some("memory:")).expect("read");
        std::fs::write(&path, "[pipeline.p]\ncommand = [\"b\"]\n").expect("written");
        let mut followed = Followed::new(&setting, none).expect("a file");
        assert!((0..3).any(|_| followed.changed().is_some()), "it changed after it was read");
    }

    #[test]
    fn values_of_a_broken_file_are_not_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("redrive.toml");
        std::fs::write(&path, "").expect("written");
        let setting = Setting::load(Some(&path), Some("memory:")).expect("read");
        let mut followed = Followed::new(&setting, none).expect("a file");
        for broken in [
            "[pipeline.p]\nhandler = \"http\"\n[pipeline.p.request]\nurl = \"u\"\nheaders = \"Bearer pl4nted\"\n",
            "[pipeline.p]\ncommand = [\"x\"]\ntimeout = \"pl4nted\"\n",
            "[pipeline.p]\ncommand = [\"x\"]\nmode = \"pl4nted\"\n",
            "[pipeline.p]\ncommand = [\"x\"]\nenv = { TOKEN = \"pl4nted }\n",
            "store = \"pl4nted:x\"\n",
        ] {
            std::fs::write(&path, broken).expect("written");
            let told = std::iter::repeat_with(|| followed.changed()).flatten().next();
            let Some(Err(why)) = told else { panic!("it is broken: {broken}") };
            assert!(why.contains("redrive.toml") || why.contains("store"), "{why}");
            assert!(!why.contains("pl4nted"), "{why}");
        }
    }
}
