//! What must hold of payloads that were uploaded.

use redrive_core::payloads::{Payload, PayloadHash, PayloadPlace};

use super::reported::reported;
use super::script::{Shared, ada, at, pipeline};
use crate::contract::{ImportDead, NoteUpload, RegisterPayload, Upload};

async fn find(store: &Shared, n: u8) -> Option<Upload> {
    store.find_upload([n; 32]).await.expect("answered")
}

async fn note(store: &Shared, who: &str, (sha256, hash): (u8, u8), secs: i64, forget_before: i64) {
    let params = NoteUpload {
        who: who.to_owned(),
        sha256: [sha256; 32],
        hash: PayloadHash::from_bytes([hash; 32]),
        forget_before: at(forget_before),
        now: at(secs),
    };
    store.note_upload(params).await.expect("noted");
}

/// It is known who brought a payload and which pipelines use it, as long as it is there and was not brought too long ago.
pub async fn it_is_known_who_brought_an_upload_and_who_uses_it(store: Shared) {
    let hash = PayloadHash::from_bytes([7; 32]);
    let own = store.store_ids().await.expect("ids").own;
    let params = RegisterPayload {
        place: PayloadPlace { store: Some(own), hash, salt: 1 },
        size_bytes: 100,
        stored_bytes: 40,
        spooled_on: None,
        instead_of: None,
        wanted_by: None,
        now: at(0),
    };
    store.register_payload(params).await.expect("registered");
    note(&store, "ada", (1, 7), 10, 0).await;
    note(&store, "ada", (1, 7), 11, 0).await;
    note(&store, "bob", (1, 7), 12, 0).await;
    let found = find(&store, 1).await.expect("found");
    let mut brought_by = found.brought_by.clone();
    brought_by.sort_unstable();
    assert_eq!((found.hash, found.size_bytes, brought_by), (hash, 100, vec!["ada".to_owned(), "bob".to_owned()]));
    assert!(found.used_by.is_empty());
    let mut letter = reported(1, "key", 10);
    letter.letter.payload = Some(hash);
    letter.letter.failures.as_mut().expect("failures")[0].payload = Some(Payload::bare(hash, 100));
    store.import_dead(ImportDead { letters: vec![letter].into(), by: ada(), now: at(13) }).await.expect("reported");
    assert_eq!(find(&store, 1).await.expect("found").used_by, [pipeline()]);
    note(&store, "ada", (2, 8), 14, 0).await;
    assert_eq!(find(&store, 2).await, None, "its payload is not there");
    note(&store, "bob", (1, 7), 20, 15).await;
    assert_eq!(find(&store, 1).await.expect("found").brought_by, ["bob"], "hers was too long ago");
}
