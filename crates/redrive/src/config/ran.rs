//! The commands that this user gave on a command line here, by their fingerprints: only those are taken out of a store and run again
//! without being repeated. The list is the user's own, in a folder that is no part of any store, so that a store that was copied,
//! restored or written by somebody else brings no command into force.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redrive_core::definitions::{DefinitionVersion, KeptCommand, ResultsFile};
use redrive_core::ids::PipelineName;
use serde::{Deserialize, Serialize};

/// Where this user keeps what is no part of any store; nowhere if it is not known where a user keeps such things.
pub(super) fn state_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("redrive"))
}

/// The file that results of a version of a definition went to.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NotedResults {
    pub(super) version: DefinitionVersion,
    pub(super) file: ResultsFile,
    pub(super) pipeline: Option<PipelineName>,
    /// The server whose jobs they were. Absent if the store was opened here.
    pub(super) server: Option<String>,
}

/// The list of commands that a user ran.
#[derive(Clone, Debug)]
pub struct RanCommands(PathBuf);

impl RanCommands {
    /// That of this user; none where it is not known where a user keeps such things.
    pub fn of_this_user() -> Option<Self> {
        state_folder().map(|folder| Self::at(&folder))
    }

    /// That in a folder.
    pub fn at(folder: &Path) -> Self {
        Self(folder.join("commands"))
    }

    /// Notes that the user ran a command.
    pub fn note(&self, command: &KeptCommand) -> io::Result<()> {
        if self.has(command) {
            return Ok(());
        }
        append(&self.0, &command.fingerprint())
    }

    /// Whether the user ran a command. A list that somebody else could have written proves nothing.
    pub fn has(&self, command: &KeptCommand) -> bool {
        let wanted = command.fingerprint();
        lines(&self.0).into_iter().flatten().any(|line| line == wanted)
    }

    /// Keeps a command that the user ran for a server, by the version of the definition that has it.
    pub(super) fn note_served(&self, version: &DefinitionVersion, command: &KeptCommand) -> io::Result<()> {
        let line = serde_json::to_string(&(version, command))?;
        match lines(&self.by_version()).into_iter().flatten().any(|known| known == line) {
            true => Ok(()),
            false => append(&self.by_version(), &line),
        }
    }

    /// The commands that the user ran for servers, by version.
    pub(super) fn served(&self) -> Vec<(DefinitionVersion, Vec<KeptCommand>)> {
        let mut known: Vec<(DefinitionVersion, Vec<KeptCommand>)> = Vec::new();
        let kept = lines(&self.by_version()).into_iter().flatten();
        for (version, command) in kept.filter_map(|line| serde_json::from_str(&line).ok()) {
            match known.iter_mut().find(|(other, _)| *other == version) {
                Some((_, commands)) => commands.push(command),
                None => known.push((version, vec![command])),
            }
        }
        known
    }

    /// Notes that the user had results written to a file.
    pub(super) fn note_results(&self, noted: &NotedResults) -> io::Result<()> {
        let is_same = |known: &NotedResults| (&known.version, &known.server) == (&noted.version, &noted.server);
        match self.results().into_iter().rfind(is_same) {
            Some(last) if last == *noted => Ok(()),
            _ => append(&self.files(), &serde_json::to_string(noted)?),
        }
    }

    /// The files that the user had results written to, the last of a version at the end.
    pub(super) fn results(&self) -> Vec<NotedResults> {
        let kept = lines(&self.files()).into_iter().flatten();
        kept.filter_map(|line| serde_json::from_str(&line).ok()).collect()
    }

    fn files(&self) -> PathBuf {
        self.0.with_file_name("results")
    }

    fn by_version(&self) -> PathBuf {
        self.0.with_file_name("served")
    }
}

/// Adds a line to a file that nobody else reads.
fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// The lines of a file, if it is there and nobody else could have written it.
fn lines(path: &Path) -> Option<impl Iterator<Item = String> + use<>> {
    let file = File::open(path).ok()?;
    let found = file.metadata().ok()?;
    let own = found.is_file() && found.mode() & 0o077 == 0 && found.uid() == rustix::process::geteuid().as_raw();
    own.then(|| BufReader::new(file).lines().map_while(Result::ok))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_what_the_user_ran_is_known_and_only_from_a_list_of_the_users_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let ran = RanCommands::at(&folder.path().join("deep/redrive"));
        let command = |word: &str| KeptCommand { words: vec![word.into()], ..KeptCommand::default() };
        assert!(!ran.has(&command("a")));
        for _ in 0..3 {
            ran.note(&command("a")).expect("noted");
        }
        ran.note(&command("b")).expect("noted");
        assert!(ran.has(&command("a")) && ran.has(&command("b")) && !ran.has(&command("c")));
        let text = std::fs::read_to_string(&ran.0).expect("read");
        assert_eq!(text.lines().count(), 2, "each once");
        assert_eq!(std::fs::metadata(&ran.0).expect("there").mode() & 0o777, 0o600);
        std::fs::set_permissions(&ran.0, std::fs::Permissions::from_mode(0o620)).expect("changed");
        assert!(!ran.has(&command("a")), "another could have written it");
    }

    #[test]
    fn files_of_results_are_known_by_version_and_the_last_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let ran = RanCommands::at(folder.path());
        let file = |path: &str| ResultsFile { path: path.into(), bare: false };
        for path in ["/a", "/a", "/b", "/a"] {
            let (version, pipeline) = (DefinitionVersion::new("1"), "shop".parse().ok());
            let noted = NotedResults { version, file: file(path), pipeline, server: None };
            ran.note_results(&noted).expect("noted");
        }
        let known: Vec<_> = ran.results().into_iter().map(|noted| noted.file.path).collect();
        assert_eq!(known, ["/a", "/b", "/a"].map(PathBuf::from));
    }

    #[test]
    fn commands_for_servers_are_found_by_the_version_that_has_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let ran = RanCommands::at(folder.path());
        assert!(ran.served().is_empty());
        let command = |word: &str| KeptCommand { words: vec![word.into()], ..KeptCommand::default() };
        for (version, word) in [("1", "a"), ("1", "a"), ("2", "b"), ("1", "c")] {
            ran.note_served(&DefinitionVersion::new(version), &command(word)).expect("noted");
        }
        let (one, two) = (DefinitionVersion::new("1"), DefinitionVersion::new("2"));
        assert_eq!(ran.served(), [(one, vec![command("a"), command("c")]), (two, vec![command("b")])]);
        assert!(!ran.has(&command("a")), "it is another list");
    }
}
