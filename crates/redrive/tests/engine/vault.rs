//! The vault on a folder and on a real S3 server: what goes in comes out, once, and nothing else is removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redrive::chance::SeededChance;
use redrive::clock::TestClock;
use redrive::events::{Happening, Heard};
use redrive::vault::{Capture, Spool, Vault, VaultError};
use redrive::{CancellationToken, FailureReport, Handler, Job, Pipeline, Reason, Redrive, json};
use redrive_core::dead::DeadLetter;
use redrive_core::payloads::{Payload, Response, UnreadableWhy};
use redrive_store::contract::{CancelJobs, DeadFilter, EnqueuedJob, ListDead};
use redrive_store::sqlite::SqliteStore;
use tokio::sync::Semaphore;

use crate::support::s3::S3;

async fn save(vault: &Vault, bytes: &[u8], cap: u64) -> Result<Payload, VaultError> {
    let mut capture = Capture::begin(cap).expect("begun");
    bytes.chunks(10_000).for_each(|chunk| capture.write(chunk).expect("written"));
    vault.save(capture, Response { status: Some(200), ..Response::default() }, None).await
}

async fn load(vault: &Vault, payload: &Payload) -> Vec<u8> {
    let mut bytes = Vec::new();
    vault.copy(payload.hash, &mut bytes).await.expect("kept");
    bytes
}

/// What must hold of a vault, wherever it is.
async fn exercise(vault: &Vault) {
    let random: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(12 << 20).collect();
    for bytes in [&b"<html>small</html>"[..], &[], &random] {
        let payload = save(vault, bytes, u64::MAX).await.expect("kept");
        assert_eq!((payload.size_bytes, payload.truncated), (bytes.len() as u64, false));
        assert!(load(vault, &payload).await == bytes, "{} bytes come back as they were", bytes.len());
        vault.verify(payload.hash).await.expect("whole");
    }
    let cut = save(vault, &random, 1 << 20).await.expect("kept");
    assert_eq!((cut.size_bytes, cut.truncated, cut.total_bytes), (1 << 20, true, Some(12 << 20)));
    assert!(load(vault, &cut).await == random[..1 << 20]);
    let spared = vault.collect(Duration::from_secs(60), &ada()).await.expect("collected");
    assert_eq!((spared.unused, spared.strays), (0, 0), "what was wanted lately is spared");
}

fn redrive() -> Redrive {
    Redrive::over(Arc::new(SqliteStore::in_memory().expect("opened")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_payloads() {
    let folder = tempfile::tempdir().expect("a folder");
    let redrive = redrive();
    let vault = Vault::open(&folder.path().join("payloads").display().to_string(), &redrive).expect("a vault");
    exercise(&vault).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn s3_keeps_payloads() {
    let (s3, redrive) = (S3::start(), redrive());
    let vault = s3.vault(&redrive, "the-secret");
    exercise(&vault).await;
    let before = s3.files();
    let first = save(&vault, b"the same", u64::MAX).await.expect("kept");
    let added = s3.files() - before;
    let second = save(&vault, b"the same", u64::MAX).await.expect("kept");
    assert_eq!(first.hash, second.hash);
    assert_eq!(s3.files(), before + added, "equal payloads are kept once");
    tokio::time::sleep(Duration::from_millis(20)).await;
    let collected = vault.collect(Duration::ZERO, &ada()).await.expect("collected");
    assert_eq!(collected.unused, 5, "nothing refers to any of them");
    assert!(matches!(vault.verify(first.hash).await, Err(VaultError::Missing(_))));
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Checks what holds of a payload whose file is removed, or damaged.
async fn lose(redrive: &Redrive, vault: &Vault, folder: &Path) {
    let page = save(vault, b"a page", u64::MAX).await.expect("kept");
    let known = async || {
        let found = redrive.store().place_of_payload(page.hash).await.expect("asked").expect("registered");
        found.unreadable.map(|unreadable| unreadable.why)
    };
    let file = || files(folder).pop().expect("a file");
    let (at, kept) = (file(), std::fs::read(file()).expect("read"));
    assert!(vault.bytes(page.hash, 1).await.is_err());
    assert_eq!(known().await, None, "somebody was wrong about its length");
    std::fs::remove_file(&at).expect("removed");
    assert_eq!(known().await, None, "nobody has read it");
    assert!(matches!(vault.bytes(page.hash, page.size_bytes).await, Err(VaultError::Missing(_))));
    assert_eq!(known().await, Some(UnreadableWhy::Missing));
    std::fs::write(&at, &kept).expect("put back");
    assert!(load(vault, &page).await == b"a page");
    assert_eq!(known().await, None, "a read finds it again");
    std::fs::write(&at, &kept[..kept.len() - 3]).expect("damaged");
    let verified = redrive.verify_payloads(vault, &[], |_| {}).await.expect("looked at");
    assert_eq!((verified.broken, known().await), (1, Some(UnreadableWhy::Damaged)));
    save(vault, b"a page", u64::MAX).await.expect("kept again");
    assert_eq!(known().await, None, "it was written again");
    vault.verify(page.hash).await.expect("whole");
    std::fs::remove_file(&at).expect("the damaged one was left");
    std::fs::remove_file(file()).expect("removed");
    assert!(matches!(vault.copy(page.hash, &mut Vec::new()).await, Err(VaultError::Missing(_))));
    assert_eq!(known().await, Some(UnreadableWhy::Missing));
    let verified = redrive.verify_payloads(vault, &[], |_| {}).await.expect("looked at");
    assert_eq!((verified.broken, known().await), (1, Some(UnreadableWhy::Missing)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_reads_do_not_find_in_a_folder_is_marked_until_they_do() {
    let (folder, redrive) = (tempfile::tempdir().expect("a folder"), redrive());
    let vault = Vault::open(&folder.path().display().to_string(), &redrive).expect("a vault");
    lose(&redrive, &vault, folder.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn a_payload_that_reads_do_not_find_in_a_bucket_is_marked_until_they_do() {
    let (s3, redrive) = (S3::start(), redrive());
    let vault = s3.vault(&redrive, "the-secret");
    lose(&redrive, &vault, &s3.folder.path().join("evidence/payloads")).await;
    let page = save(&vault, b"another page", u64::MAX).await.expect("kept");
    assert!(s3.vault(&redrive, "wrong").verify(page.hash).await.is_err());
    let found = redrive.store().place_of_payload(page.hash).await.expect("asked").expect("registered");
    assert_eq!(found.unreadable, None, "a vault that refuses says nothing of it");
}

/// A bucket may be anybody's: two stores in it never meet, and what else is there is not touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn stores_that_share_a_bucket_never_meet() {
    let s3 = S3::start();
    let (first, second) = (redrive(), redrive());
    let (first, second) = (s3.vault(&first, "the-secret"), s3.vault(&second, "the-secret"));
    let bucket = s3.folder.path().join("evidence");
    let name = format!("{}-0123abcd.zst", "ab".repeat(32));
    let others =
        ["invoice.pdf".to_owned(), format!("payloads/ab/{name}"), format!("payloads/{}/ab/{name}", "0".repeat(32))];
    for other in &others {
        std::fs::create_dir_all(bucket.join(other).parent().expect("a folder")).expect("made");
        std::fs::write(bucket.join(other), "mine").expect("written");
    }
    let page = save(&first, b"the same", u64::MAX).await.expect("kept");
    save(&second, b"the same", u64::MAX).await.expect("kept");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let collected = first.collect(Duration::ZERO, &ada()).await.expect("collected");
    assert_eq!((collected.unused, collected.strays), (1, 0));
    assert!(load(&second, &page).await == b"the same");
    for other in &others {
        assert_eq!(std::fs::read(bucket.join(other)).expect("there"), b"mine", "{other}");
    }
}

/// A handler that keeps the same page for each job; tells when, and fails once it may.
fn keeper(saved: Arc<Semaphore>, go_on: CancellationToken) -> impl Handler {
    let first = CancellationToken::new();
    move |job: Job| {
        let (saved, first, go_on) = (Arc::clone(&saved), first.clone(), go_on.clone());
        async move {
            if job.input["n"] == 2 {
                // After the other one, so that it is known to want it last.
                first.cancelled().await;
            }
            let mut capture = job.evidence.capture().expect("begun");
            capture.write(b"a page").expect("written");
            job.evidence.save(capture, Response::default(), None).await.expect("kept");
            first.cancel();
            saved.add_permits(1);
            go_on.cancelled().await;
            Err::<serde_json::Value, _>(FailureReport::new(Reason::SchemaValidation, "no price"))
        }
    }
}

/// A job keeps a page that is collected before its attempt is settled; `meanwhile` happens before that. Gives its letter.
async fn collected_too_soon(folder: &Path, meanwhile: impl FnOnce()) -> (Redrive, Vault, DeadLetter) {
    let redrive = redrive();
    let vault = Vault::open(&folder.display().to_string(), &redrive).expect("a vault");
    let (saved, go_on) = (Arc::new(Semaphore::new(0)), CancellationToken::new());
    let handler = keeper(Arc::clone(&saved), go_on.clone());
    let pipeline = Pipeline::new("p", handler).expect("a pipeline").vault(vault.clone()).concurrency(2);
    let accepted = redrive.enqueue(&pipeline, [json!({"n": 1}), json!({"n": 2})]).await.expect("accepted");
    let EnqueuedJob::Accepted(second) = accepted[1] else { panic!("accepted") };
    let draining = tokio::spawn({
        let redrive = redrive.clone();
        async move { redrive.drain(pipeline).await }
    });
    saved.acquire_many(2).await.expect("both have it").forget();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(vault.collect(Duration::ZERO, &ada()).await.expect("collected").unused, 0, "a leased job wants it");
    let cancel = CancelJobs { ids: vec![second], by: ada(), why: "w".into(), now: redrive.now() };
    redrive.store().cancel_jobs(cancel).await.expect("cancelled");
    assert_eq!(vault.collect(Duration::ZERO, &ada()).await.expect("collected").unused, 1, "who wanted it last is gone");
    meanwhile();
    go_on.cancel();
    draining.await.expect("no panic").expect("drained");
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 10) };
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
    (redrive, vault, letter)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_was_collected_before_its_settlement_is_kept_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_redrive, vault, letter) = collected_too_soon(folder.path(), || ()).await;
    let payload = letter.saved_payload().expect("kept").clone();
    assert!(load(&vault, &payload).await == b"a page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_cannot_be_kept_again_is_told_to_be_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("payloads");
    let (_redrive, _vault, letter) = collected_too_soon(&place, || {
        std::fs::remove_dir_all(&place).expect("removed");
        std::fs::write(&place, "no folder").expect("written");
    })
    .await;
    assert_eq!((letter.payload, letter.saved_payload()), (None, None));
    let why = letter.failures.expect("failures").remove(0).payload.expect("told").lost.expect("lost");
    assert!(
        why.contains("collected before the attempt was settled") && why.contains("could not be kept again"),
        "{why}"
    );
}

/// Payloads that came while the bucket was away reach it, and are read from where they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn what_was_spooled_reaches_the_bucket() {
    let folder = tempfile::tempdir().expect("a folder");
    let (s3, redrive) = (S3::start(), redrive());
    let spool = Spool::beside(&folder.path().join("redrive.db"), 1 << 20);
    let away = s3.vault(&redrive, "wrong").with_spool(spool.clone());
    let mut listener = redrive.events().listen();
    let page = save(&away, b"a page", u64::MAX).await.expect("kept on disk");
    let Some(Heard::Event(told)) = listener.next().await else { panic!("it is heard") };
    assert!(matches!(&told.what, Happening::VaultAway { vault, .. } if vault == away.address()), "{told:?}");
    assert_eq!((s3.files(), spool.waiting().expect("counted").payloads), (0, 1));
    assert!(load(&away, &page).await == b"a page");
    let large: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(2 << 20).collect();
    let full = save(&away, &large, u64::MAX).await.expect_err("no room");
    assert!(matches!(full, VaultError::SpoolFull { .. }), "{full}");
    let back = s3.vault(&redrive, "the-secret").with_spool(spool.clone());
    assert_eq!(back.upload_spooled().await.expect("uploaded"), 1);
    assert_eq!(spool.waiting().expect("counted").payloads, 0);
    let unspooled = s3.vault(&redrive, "the-secret");
    assert!(load(&unspooled, &page).await == b"a page");
    // One that was collected while it waited is not brought there.
    save(&away, b"unwanted", u64::MAX).await.expect("kept on disk");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(back.collect(Duration::ZERO, &ada()).await.expect("collected").unused, 2);
    assert_eq!((spool.waiting().expect("counted").payloads, back.upload_spooled().await.expect("nothing")), (0, 0));
}

/// A vault that refuses, the same one as it answers again, and their spool.
fn spooling(s3: &S3, redrive: &Redrive, folder: &Path) -> (Vault, Vault, Spool) {
    let spool = Spool::beside(&folder.join("redrive.db"), 1 << 20);
    let vault = |secret| s3.vault(redrive, secret).with_spool(spool.clone());
    (vault("wrong"), vault("the-secret"), spool)
}

/// The rows of a copied store say that payloads are on their way which the original has brought to the vault long since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn what_another_store_brought_is_not_on_its_way_for_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let (s3, redrive) = (S3::start(), redrive());
    let (away, back, _) = spooling(&s3, &redrive, folder.path());
    let page = save(&away, b"a page", u64::MAX).await.expect("kept on disk");
    let unspooled = s3.vault(&redrive, "the-secret");
    let error = unspooled.verify(page.hash).await.expect_err("not there yet");
    assert!(matches!(error, VaultError::OnItsWay { .. }), "{error}");
    assert_eq!(back.upload_spooled().await.expect("uploaded"), 1);
    let store = redrive.store();
    let place = store.place_of_payload(page.hash).await.expect("asked").expect("registered").place;
    store.note_spooled(place, Some("elsewhere".into())).await.expect("as in a copy");
    assert!(load(&unspooled, &page).await == b"a page");
    let at = store.place_of_payload(page.hash).await.expect("asked").expect("registered");
    assert_eq!(at.spooled_on, None, "it is known to have arrived");
}

/// One bad file in the spool does not keep the others from the vault, and says nothing about the vault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn a_damaged_file_stops_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let (s3, redrive) = (S3::start(), redrive());
    let (away, back, spool) = spooling(&s3, &redrive, folder.path());
    let bad = save(&away, b"the first, which is oldest", u64::MAX).await.expect("kept on disk");
    let file = std::fs::read_dir(spool.folder()).expect("a folder").flatten().next().expect("a file").path();
    let whole = std::fs::read(&file).expect("read");
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("cut");
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    std::fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(long_ago)).expect("set");
    let good = save(&away, b"the second", u64::MAX).await.expect("kept on disk");
    assert_eq!(back.upload_spooled().await.expect("uploaded"), 1);
    assert!(load(&s3.vault(&redrive, "the-secret"), &good).await == b"the second");
    let error = back.verify(bad.hash).await.expect_err("damaged");
    assert!(matches!(error, VaultError::Damaged(_)), "{error}");
    let next = save(&back, b"the third", u64::MAX).await.expect("kept");
    assert!(load(&s3.vault(&redrive, "the-secret"), &next).await == b"the third", "the vault is not away");
    assert_eq!(spool.waiting().expect("counted").payloads, 1, "the damaged one is left for people to see");
}

/// While the vault is away nobody looks into the spool; what a kill left there goes by the clock that everything goes by.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn the_spool_is_left_alone_while_the_vault_is_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let s3 = S3::start();
    let clock = Arc::new(TestClock::at(redrive().now()));
    let redrive = redrive().with_surroundings(Arc::<TestClock>::clone(&clock), Arc::new(SeededChance::new(1)));
    let (away, back, spool) = spooling(&s3, &redrive, folder.path());
    save(&away, b"a page", u64::MAX).await.expect("kept on disk");
    let aside = folder.path().join("aside");
    std::fs::rename(spool.folder(), &aside).expect("moved");
    std::fs::write(spool.folder(), "no folder").expect("written");
    assert!(back.upload_spooled().await.is_err(), "it cannot be listed");
    assert_eq!(away.upload_spooled().await.expect("not looked at"), 0);
    std::fs::remove_file(spool.folder()).and_then(|()| std::fs::rename(&aside, spool.folder())).expect("moved back");
    let unfinished = spool.folder().join(format!("{}-0123abcd.zst.part", "ab".repeat(32)));
    std::fs::write(&unfinished, "killed").expect("written");
    assert_eq!(back.upload_spooled().await.expect("uploaded"), 1);
    assert!(unfinished.exists(), "its writer may be at it");
    clock.advance(Duration::from_secs(2 * 3_600));
    back.upload_spooled().await.expect("nothing to bring");
    assert!(!unfinished.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn a_vault_that_refuses_says_so() {
    let (s3, redrive) = (S3::start(), redrive());
    let error = save(&s3.vault(&redrive, "wrong"), b"x", 10).await.expect_err("refused");
    assert!(error.to_string().contains("s3://evidence/payloads"), "{error}");
    assert!(Vault::open("s9://x/y", &redrive).is_err());
}

fn ada() -> redrive_core::actors::Actor {
    redrive_core::actors::Actor::new("ada", redrive_core::actors::Via::Api)
}
