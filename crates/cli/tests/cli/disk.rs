//! A small disk of a test's own, which can be full or read-only: a tmpfs, mounted for as long as the test runs.
//!
//! Mounting needs root, or a user namespace in which the tests run: `scripts/test` makes one where it is allowed to.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted tmpfs; it is unmounted when it is dropped.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts a disk at a folder, which is made if need be, with options such as `size=600k`.
    #[track_caller]
    pub fn mount(folder: impl Into<PathBuf>, options: &str) -> Self {
        let folder = folder.into();
        std::fs::create_dir_all(&folder).expect("made");
        mount(&["-t", "tmpfs", "-o", options, "tmpfs"], &folder);
        Self(folder)
    }

    /// Changes its options: `size=64m`, `ro`, `rw`.
    #[track_caller]
    pub fn remount(&self, options: &str) {
        // Naming the source keeps `mount` from repeating the old options, of which a user namespace refuses some.
        mount(&["-t", "tmpfs", "-o", &format!("remount,{options}"), "tmpfs"], &self.0);
    }

    /// Writes to it until nothing more fits.
    pub fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("filler")).expect("made");
        // Ends when the disk is full, and with the error that says so.
        let _ = std::io::copy(&mut std::io::repeat(1), &mut file);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[track_caller]
fn mount(args: &[&str], folder: &Path) {
    let status = Command::new("mount").args(args).arg(folder).status().expect("mount is installed");
    assert!(status.success(), "a small disk needs the right to mount one: run scripts/test, or as root");
}
