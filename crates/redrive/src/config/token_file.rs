//! The token file of a store that has no tokens yet. It is readable by its user alone: whoever sends what is in it is on this machine,
//! and is that user or root.
//!
//! It is beside the store's file, or in the user's folder if the store is a server. A server also leaves a copy in the user's folder
//! under its port, so that clients find it by the address of the server.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redrive_store::Location;

use super::ran::state_folder;
use crate::tokens::{TokenError, new_secret};

/// Prefix of the token.
const PREFIX: &str = "rdl_";

/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 1_024;

/// A token file, with what is in it.
#[derive(Clone)]
pub struct TokenFile {
    path: PathBuf,
    token: String,
}

/// Why there is no token file.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It is not known where this user keeps files.
    #[error(
        "there is no place for a token file: neither XDG_STATE_HOME nor HOME is set; make a token with `redrive token create`"
    )]
    NoFolder,
    /// It cannot be written or read.
    #[error("the token file {path} cannot be used: {source}; make a token with `redrive token create`")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A secret cannot be made.
    #[error(transparent)]
    Secret(#[from] TokenError),
}

impl TokenFile {
    /// The token file of a store; it is made if there is none, and anew if others could have read it.
    pub fn open(location: &Location) -> Result<Self, TokenFileError> {
        let path = Self::place(location).ok_or(TokenFileError::NoFolder)?;
        let unusable = |source| TokenFileError::Unusable { path: path.clone(), source };
        if let Some(token) = read(&path).map_err(unusable)? {
            return Ok(Self { path, token });
        }
        write(&path, &new_secret(PREFIX)?).map_err(unusable)?;
        // If two servers begin at once, both take what is there now.
        let token = read(&path).map_err(unusable)?;
        let token = token.ok_or_else(|| unusable(io::Error::other("others can read it")))?;
        Ok(Self { path, token })
    }

    /// One that is in no file, for tests.
    pub fn of_token(token: &str) -> Self {
        Self { path: PathBuf::new(), token: token.to_owned() }
    }

    /// Removes the token file of a store that has tokens now: it lets nobody in.
    pub fn remove(location: &Location) {
        if let Some(path) = Self::place(location) {
            // It is not there, or is another user's.
            let _ = fs::remove_file(path);
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Leaves a copy where clients look for it that know only the port of the server.
    pub fn serve_on(&self, port: u16) -> io::Result<()> {
        by_port(port).map_or(Ok(()), |path| write(&path, &self.token))
    }

    /// Removes that copy.
    pub fn leave(port: u16) {
        if let Some(path) = by_port(port) {
            // It is not there, or the next server on this port replaces it.
            let _ = fs::remove_file(path);
        }
    }

    /// The token for a server on this machine: by its port, or else that of a store.
    pub fn find(port: u16, location: impl FnOnce() -> Option<Location>) -> Option<String> {
        let found = by_port(port).and_then(|path| read(&path).ok().flatten());
        found.or_else(|| read(&Self::place(&location()?)?).ok().flatten())
    }

    fn place(location: &Location) -> Option<PathBuf> {
        match location.file() {
            Some(file) => {
                let mut name = file.file_name()?.to_owned();
                name.push("-token");
                Some(file.with_file_name(name))
            }
            None => {
                let name = blake3::hash(location.to_string().as_bytes()).to_hex();
                Some(state_folder()?.join("tokens").join(&name.as_str()[..32]))
            }
        }
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenFile({})", self.path.display())
    }
}

fn by_port(port: u16) -> Option<PathBuf> {
    Some(state_folder()?.join("servers").join(port.to_string()))
}

/// Reads a file, if it is there and nobody else can read or write it.
fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    let is_own = found.is_file() && found.mode() & 0o077 == 0 && found.uid() == rustix::process::geteuid().as_raw();
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    let token = text.trim();
    Ok((is_own && token.starts_with(PREFIX)).then(|| token.to_owned()))
}

/// Writes a file that nobody else can read, in the place of one that is there.
fn write(path: &Path, token: &str) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let beside = path.with_file_name(name);
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&beside)?;
    let written = file.write_all(format!("{token}\n").as_bytes()).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_file_is_its_users_alone_and_is_made_anew_if_others_could_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Location::sqlite(&folder.path().join("a.db"));
        let made = TokenFile::open(&store).expect("made");
        assert_eq!(made.path(), folder.path().join("a.db-token"));
        let mode = || fs::metadata(made.path()).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        assert_eq!(TokenFile::open(&store).expect("there").token(), made.token());
        assert!(!format!("{made:?}").contains(made.token()));
        fs::set_permissions(made.path(), fs::Permissions::from_mode(0o640)).expect("set");
        let anew = TokenFile::open(&store).expect("made anew");
        assert_ne!(anew.token(), made.token());
        assert_eq!(mode(), 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "nothing is left beside it");
    }
}
