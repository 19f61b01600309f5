//! What must hold of payloads that were uploaded.

use redrive_core::payloads::{PayloadHash, PayloadPlace};

use super::script::{Shared, ada, at};
use crate::contract::{FindUpload, NoteUpload, RegisterPayload, SweepPayloads, Upload};

async fn find(store: &Shared, who: &str, n: u8) -> Option<Upload> {
    store.find_upload(FindUpload { who: who.to_owned(), sha256: [n; 32] }).await.expect("answered")
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

/// An upload is known to who brought it, as long as its payload is there and it is not too old.
pub async fn an_upload_is_known_to_who_brought_it(store: Shared) {
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
    assert_eq!(find(&store, "ada", 1).await, Some(Upload { hash, size_bytes: 100 }));
    assert_eq!(find(&store, "bob", 1).await, None, "it is not his");
    note(&store, "ada", (2, 8), 12, 0).await;
    assert_eq!(find(&store, "ada", 2).await, None, "its payload is not there");
    note(&store, "bob", (1, 7), 20, 15).await;
    assert_eq!(find(&store, "ada", 1).await, None, "too old");
    let sweep = SweepPayloads { before: at(99), limit: 9, by: ada(), now: at(99) };
    store.sweep_payloads(sweep).await.expect("swept");
    assert_eq!(find(&store, "bob", 1).await, None);
}
