//! Stores that are copied with their payloads, from a folder to a bucket and back.

use redrive::config::{Config, Setting};
use redrive::copies::{Copied, StoreCopy};
use redrive::vault::Capture;
use redrive_core::actors::{Actor, Via};
use redrive_core::payloads::{Payload, Response};

use crate::server;
use crate::support::s3::S3;

/// The bucket of a setting, on a server.
fn section(s3: &S3, prefix: &str) -> String {
    format!(
        "[vault]\nurl = \"s3://evidence/{prefix}\"\nendpoint = \"http://{}\"\nregion = \"us-east-1\"\n\
         access_key_id = \"the-id\"\nsecret_access_key = \"the-secret\"\n",
        s3.address
    )
}

fn setting(folder: &std::path::Path, store: &str, vault: &str) -> Setting {
    let config = Config::parse(vault, &folder.join("redrive.toml")).expect("a configuration");
    Setting::of(config, Some(store)).expect("a setting")
}

async fn copied(setting: &Setting, [from, to]: [&str; 2], [from_vault, vault]: [Option<&str>; 2]) -> Copied {
    let asked = StoreCopy {
        from: from.to_owned(),
        to: to.to_owned(),
        vault: vault.map(str::to_owned),
        from_vault: from_vault.map(str::to_owned),
        allow_missing: false,
        by: Actor::new("ada", Via::Cli),
    };
    let copied = setting.copy_store(&asked, |_| {}).await.expect("copied");
    assert_eq!((&copied.payloads.named, &copied.problems), (&Vec::new(), &Vec::new()));
    copied
}

/// That a store has payloads in its vault.
async fn assert_kept(setting: &Setting, payloads: &[Payload]) {
    let redrive = setting.redrive_existing().await.expect("opened");
    let vault = setting.vault(&redrive).expect("opened").expect("there is one");
    for (n, payload) in payloads.iter().enumerate() {
        let mut bytes = Vec::new();
        vault.copy(payload.hash, &mut bytes).await.expect("kept");
        assert_eq!(String::from_utf8(bytes), Ok(format!("<html>page {n}</html>")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn payloads_come_from_a_folder_to_a_bucket_and_back() {
    let (s3, folder) = (S3::start(), tempfile::tempdir().expect("a folder"));
    let at = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let (first, second, third) = (at("first.db"), server::url(&server::schema()), at("third/redrive.db"));
    let pages = ["one", "three"].map(|name| folder.path().join(name).display().to_string());
    let in_folder = |store: &str, pages: &str| setting(folder.path(), store, &format!("vault = \"{pages}\"\n"));
    let source = in_folder(&first, &pages[0]);
    let mut payloads = Vec::new();
    {
        let redrive = source.redrive().await.expect("made");
        let vault = source.vault(&redrive).expect("opened").expect("there is one");
        for n in 0..3 {
            let mut capture = Capture::begin(u64::MAX).expect("begun");
            capture.write(format!("<html>page {n}</html>").as_bytes()).expect("written");
            payloads.push(vault.save(capture, Response::default(), None).await.expect("kept"));
        }
    }
    // The configuration is that of the store in the server: its bucket and the key to it are its own.
    let target = setting(folder.path(), &second, &section(&s3, "two"));
    let copy = copied(&target, [&first, &second], [Some(&pages[0]), None]).await;
    assert_eq!((copy.payloads.brought, s3.files()), (3, 3));
    assert_kept(&target, &payloads).await;

    let copy = copied(&target, [&second, &third], [None, Some(&pages[1])]).await;
    assert_eq!(copy.payloads.brought, 3);
    assert_kept(&in_folder(&third, &pages[1]), &payloads).await;
    assert_kept(&source, &payloads).await;
}
