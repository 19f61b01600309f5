//! What the configuration takes from outside of itself: variables of the environment and files.
//!
//! A handler that runs in another process must be made of the same values, whatever became of the file or the environment since.
//! So what is read is recorded, sent along, and read from the record there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// What was read, by where it came from.
pub type Values = BTreeMap<String, String>;

thread_local! {
    static RECORD: RefCell<Values> = const { RefCell::new(BTreeMap::new()) };
}

static GIVEN: OnceLock<Values> = OnceLock::new();

/// Runs something and gives what it read.
pub fn recorded<T>(run: impl FnOnce() -> T) -> (T, Values) {
    RECORD.take();
    let made = run();
    (made, RECORD.take())
}

/// From now on everything is read from these values, and from nowhere else.
pub fn give(values: Values) {
    // Only a process that runs one job is given any, and once.
    let _ = GIVEN.set(values);
}

/// A variable of the environment.
pub fn variable(name: &str) -> Option<String> {
    read(format!("env:{name}"), || std::env::var(name).map_err(io::Error::other)).ok()
}

/// A text file.
pub fn file(path: &Path) -> io::Result<String> {
    read(format!("file:{}", path.display()), || std::fs::read_to_string(path))
}

fn read(place: String, live: impl FnOnce() -> io::Result<String>) -> io::Result<String> {
    if let Some(given) = GIVEN.get() {
        return given.get(&place).cloned().ok_or_else(|| io::ErrorKind::NotFound.into());
    }
    let value = live()?;
    RECORD.with_borrow_mut(|record| record.insert(place, value.clone()));
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_recorded_with_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        std::fs::write(&path, "s3cr3t").expect("written");
        let (read, values) = recorded(|| (file(&path).ok(), file(Path::new("/no/such/file")).is_err()));
        assert_eq!(read, (Some("s3cr3t".to_owned()), true));
        assert_eq!(values, BTreeMap::from([(format!("file:{}", path.display()), "s3cr3t".to_owned())]));
    }
}
