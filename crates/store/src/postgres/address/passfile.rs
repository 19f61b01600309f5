//! The password file, as libpq reads it: lines `host:port:database:user:password`, `*` fits anything, a backslash takes the next
//! character as it is. A file that others may read is not used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::SOCKETS;

/// Whom a password is for.
pub(super) struct Login<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// The file: the one that is named, or the user's own.
pub(super) fn path(named: Option<&str>, home: Option<&Path>) -> Option<PathBuf> {
    named.map(PathBuf::from).or_else(|| Some(home?.join(".pgpass")))
}

/// The password of a login, if the file has one.
pub(super) fn password(path: &Path, login: &Login<'_>) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() {
        tracing::warn!("the password file {} is not a plain file: it is not used", path.display());
        return None;
    }
    if found.mode() & 0o077 != 0 {
        tracing::warn!("others may read the password file {}: it is not used until its mode is 0600", path.display());
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| of_line(line, login))
}

fn of_line(line: &str, login: &Login<'_>) -> Option<String> {
    let [host, port, database, user, password] = <[String; 5]>::try_from(fields(line)).ok()?;
    let is_local = SOCKETS.contains(&login.host);
    let fits = |field: &str, value: &str| field == "*" || field == value;
    let fits_host = fits(&host, login.host) || (is_local && host == "localhost");
    let fits_rest = fits(&port, &login.port.to_string()) && fits(&database, login.database) && fits(&user, login.user);
    (fits_host && fits_rest).then_some(password)
}

/// The five fields of a line; the last one goes to its end.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => chars.next().unwrap_or('\\'),
            c => c,
        };
        fields.last_mut().into_iter().for_each(|field| field.push(c));
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password_and_only_if_nobody_else_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pgpass");
        let text =
            "# notes\nbroken\ndb:5432:jobs:me:one\ndb:*:*:me:t\\:w\\\\o:3\nlocalhost:5432:*:me:here\n*:*:*:*:any\n";
        fs::write(&path, text).expect("written");
        let of = |host, port, database, user| password(&path, &Login { host, port, database, user });
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
        assert_eq!(of("db", 5432, "jobs", "me"), None, "the group may read it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        assert_eq!(of("db", 5432, "jobs", "me").as_deref(), Some("one"));
        assert_eq!(of("db", 6000, "jobs", "me").as_deref(), Some("t:w\\o:3"));
        assert_eq!(of(SOCKETS[0], 5432, "jobs", "me").as_deref(), Some("here"));
        assert_eq!(of("elsewhere", 5432, "jobs", "you").as_deref(), Some("any"));
        assert_eq!(password(&folder.path().join("none"), &Login { host: "db", port: 1, database: "", user: "" }), None);
    }
}
