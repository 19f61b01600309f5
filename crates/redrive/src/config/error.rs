//! What can be wrong with the configuration: the place, what is wrong there and, for a wrong key, the nearest right one.

use std::io;
use std::path::{Path, PathBuf};

use redrive_core::failures::with_sources;
use redrive_core::ids::PipelineName;
use redrive_core::secrets::Secrets;
use redrive_store::StoreError;

use super::values::{harmless, unquoted};

/// Why the configuration cannot be used, alone or with what the caller said.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has a mistake.
    #[error(transparent)]
    Mistake(#[from] Box<Mistake>),
    /// Values of a pipeline that do not go together.
    #[error("{}: pipeline {pipeline}: {why}", .file.display())]
    Section {
        /// The file.
        file: PathBuf,
        /// The pipeline.
        pipeline: PipelineName,
        /// What is wrong.
        why: String,
    },
    /// Values of alerts that do not go together.
    #[error("{}: {why}", .file.display())]
    Alerts {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The address of the store is none.
    #[error(transparent)]
    Location(StoreError),
    /// A pipeline that cannot be made as it is defined.
    #[error("pipeline {pipeline}: {why}")]
    Pipeline {
        /// The pipeline.
        pipeline: PipelineName,
        /// What is wrong.
        why: String,
    },
    /// A pipeline that is not defined, and no command was given for it.
    #[error("pipeline {pipeline} has no command{}", if .known.is_empty() { String::new() } else { format!(" (there are: {})", names(.known)) })]
    NoCommand {
        /// The pipeline.
        pipeline: PipelineName,
        /// The pipelines that are defined.
        known: Vec<PipelineName>,
    },
    /// The command that a pipeline was run with is in the store, and this user has not run it.
    #[error("the command that pipeline {pipeline} was run with was not run by you: {command:?} in {folder}")]
    CommandOfOthers {
        /// The pipeline.
        pipeline: PipelineName,
        /// The command.
        command: String,
        /// The folder that it ran in.
        folder: String,
    },
    /// The command that a pipeline was run with has arguments that were not kept.
    #[error("the command that pipeline {pipeline} was run with has secrets that were not kept: {command:?}")]
    CommandHasSecrets {
        /// The pipeline.
        pipeline: PipelineName,
        /// The command, with what was not kept masked.
        command: String,
    },
    /// Letters died of several commands, or of some it is not known what they died of.
    #[error("the letters of pipeline {pipeline} died of more than one command: {}", listed(.commands))]
    SeveralCommands {
        /// The pipeline.
        pipeline: PipelineName,
        /// The commands with their folders; nothing in place of one that is not known.
        commands: Vec<Option<String>>,
    },
    /// One pipeline is wanted, several were named.
    #[error("several pipelines are named where one is meant")]
    SeveralNamed,
    /// One pipeline is wanted, none was named, and several are defined.
    #[error("name one of the pipelines: {}", names(.known))]
    NoneNamed {
        /// The pipelines that are defined.
        known: Vec<PipelineName>,
    },
    /// No pipeline is defined, and no command was given.
    #[error("no pipeline is defined")]
    NothingToRun,
    /// The file that results of a pipeline went to is in the store, and this user has not had any written there.
    #[error(
        "results of pipeline {pipeline} went to {}, but none were written there by you on this machine: say where they go with --out FILE",
        .path.display()
    )]
    ResultsOfOthers {
        /// The pipeline.
        pipeline: PipelineName,
        /// The file.
        path: PathBuf,
    },
    /// Results of jobs of one pipeline went to several files, or to a file when it was defined differently.
    #[error("results of pipeline {pipeline} went to {paths} before: say where they go now with --out FILE")]
    UnclearResults {
        /// The pipeline.
        pipeline: PipelineName,
        /// The files.
        paths: String,
    },
    /// Results would be written into the store's own files.
    #[error("{} is a file of the store: write the results to another one", .0.display())]
    ResultsInStore(PathBuf),
}

impl ConfigError {
    /// What is wrong, in words that have none of the values in the file: they may be secret, and logs are read by many.
    pub(super) fn without_values(&self) -> String {
        match self {
            Self::Mistake(mistake) => Mistake { what: unquoted(&mistake.what), ..(**mistake).clone() }.to_string(),
            Self::Location(error) => unquoted(&with_sources(error)),
            other => Secrets::default().mask(&with_sources(other)),
        }
    }
}

/// A mistake in the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {what}{}", .file.display(), .meant.as_ref().map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default())]
pub struct Mistake {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// The key that was probably meant.
    pub meant: Option<String>,
}

impl Mistake {
    /// Finds where a mistake is, and what was probably meant.
    pub(super) fn find(error: &toml::de::Error, text: &str, file: &Path) -> Box<Self> {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..start).unwrap_or_default();
        let what = error.message();
        let meant = meant(what).map(str::to_owned);
        let line_end = text[before.len()..].find('\n').map_or(text.len(), |end| before.len() + end);
        let what = harmless(what, &text[..line_end]);
        Box::new(Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1,
            what,
            meant,
        })
    }
}

/// Commands, as a list in a sentence.
fn listed(commands: &[Option<String>]) -> String {
    let shown = |command: &Option<String>| command.clone().unwrap_or_else(|| "one that is not known".to_owned());
    commands.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Names, as a list in a sentence.
pub(super) fn names(names: &[PipelineName]) -> String {
    names.iter().map(PipelineName::as_str).collect::<Vec<_>>().join(", ")
}

/// The wrong word and the right ones, from "unknown field `a`, expected one of `b`, `c`".
fn unknown(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field ").or_else(|| message.strip_prefix("unknown variant "))?;
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    Some((wrong, quoted.collect()))
}

/// The right word that was probably meant, from "unknown field `a`, expected one of `b`, `c`".
pub fn meant(message: &str) -> Option<&str> {
    unknown(message).and_then(|(wrong, right)| nearest(wrong, &right))
}

/// The word that is most like the wrong one, if any is like it at all.
pub fn nearest<'a>(wrong: &str, right: &[&'a str]) -> Option<&'a str> {
    let alike = |word: &&str| strsim::jaro_winkler(wrong, word);
    let best = right.iter().copied().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (alike(&best) > 0.7).then_some(best)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Config;

    #[test]
    fn secrets_are_not_in_messages_about_mistakes() {
        for text in [
            "[alerts.sink]\nslack = \"https://hooks.example/S3CR3T\"",
            "[alerts]\nsink = \"https://hooks.example/S3CR3T\"",
            "[alerts.sink.chat]\nkind = \"https://hooks.example/S3CR3T\"",
            "[alerts.sink.chat]\nkind = \"webhook\"\nurl = \"https://a.example\"\nheaders = \"Bearer S3CR3T\"",
            "[alerts.sink.chat]\nkind = \"command\"\ncommand = \"curl https://hooks.example/S3CR3T\"",
            "[pipeline.a]\ncommand = \"curl -H 'X: S3CR3T'\"",
            "[pipeline.a]\ncommand = [\"x\"]\nenv = \"S3CR3T\"",
            "[pipeline.a]\ncommand = [\"x\"]\napi_key = 1\ntimeout = \"https://bob:S3CR3T@a.example/\"",
            "[pipeline.a]\nhandler = \"http\"\n[pipeline.a.request]\nheaders = { Authorization = [\"S3CR3T\"] }",
            "[pipeline.a]\nhandler = \"http\"\n[pipeline.a.request.headers]\nAuthorization = [\n  \"S3CR3T\",\n]",
            "[pipeline.a.http]\nproxies = [\n  { label = \"a\", url = \"http://bob:S3CR3T@p.lan\", S = 1 },\n]",
            "vault = [\"s3://S3CR3T\"]",
        ] {
            let said = Config::parse(text, Path::new("redrive.toml")).expect_err("wrong").to_string();
            assert!(said.starts_with("redrive.toml:") && !said.contains("S3CR3T"), "{said}");
        }
    }
}
