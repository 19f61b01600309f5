//! What must hold of tokens.

use redrive_core::ids::TokenName;
use redrive_core::payloads::{PayloadHash, PayloadPlace};
use redrive_core::tokens::{Role, Token, TokenHash};

use super::script::{Shared, ada, at};
use crate::contract::{
    BeginRequest, BegunRequest, CountOutcomes, CreateToken, KeepAnswer, KeptAnswer, ListActivity, NoteTokensUsed,
    NoteUpload, RegisterPayload, RevokeTokens, TokenCreated,
};

fn name(text: &str) -> TokenName {
    text.parse().expect("a name")
}

fn token(text: &str) -> Token {
    Token {
        name: name(text),
        role: Role::Worker,
        pipelines: vec!["shop-*".parse().expect("a pattern")],
        payloads: true,
        created_at: at(1),
        created_by: "ada".to_owned(),
        expires_at: Some(at(900)),
        revoked_at: None,
        last_used_at: None,
    }
}

async fn create(store: &Shared, called: &str, secret: &str, had_others: bool) -> TokenCreated {
    let (token, hash) = (token(called), TokenHash::of(secret));
    store.create_token(CreateToken { token, hash, had_others, by: ada(), now: at(1) }).await.expect("answered")
}

async fn revoke(store: &Shared, names: &[&str]) -> Vec<TokenName> {
    let names = names.iter().map(|text| name(text)).collect();
    store.revoke_tokens(RevokeTokens { names, by: ada(), now: at(2) }).await.expect("answered")
}

/// A token comes back as it was kept; its name is its own as long as it is not revoked.
pub async fn a_token_is_kept_and_revoked(store: Shared) {
    assert!(store.list_tokens().await.expect("listed").is_empty());
    assert_eq!(create(&store, "ops", "a", false).await, TokenCreated::Created);
    assert_eq!(create(&store, "ops", "a", false).await, TokenCreated::Created, "sent again");
    assert_eq!(create(&store, "ops", "b", true).await, TokenCreated::NameTaken);
    let used = NoteTokensUsed { used: vec![(name("ops"), at(7)), (name("ops"), at(5)), (name("nobody"), at(5))] };
    store.note_tokens_used(used).await.expect("noted");
    let known = store.list_tokens().await.expect("listed");
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].token, Token { last_used_at: Some(at(7)), ..token("ops") });
    assert_eq!(known[0].hash, TokenHash::of("a"));
    assert_eq!(revoke(&store, &["ops", "nobody"]).await, [name("ops")]);
    assert_eq!(create(&store, "ops", "b", true).await, TokenCreated::Created, "the name is free");
    let known = store.list_tokens().await.expect("listed");
    let revoked: Vec<_> = known.iter().map(|known| known.token.revoked_at).collect();
    assert_eq!(revoked, [Some(at(2)), None]);
    let params = ListActivity { limit: 9, ..ListActivity::default() };
    let noted = store.list_activity(params).await.expect("listed").items;
    let verbs: Vec<_> = noted.iter().map(|view| format!("{} {}", view.verb, view.object)).collect();
    let mut verbs: Vec<_> = verbs.iter().map(String::as_str).collect();
    verbs.sort_unstable();
    assert_eq!(verbs, ["create token ops", "create token ops", "revoke token ops"]);
}

/// Of two who make the first token, one is heard: the other has to look again.
pub async fn the_first_token_is_made_once(store: Shared) {
    assert_eq!(create(&store, "one", "a", false).await, TokenCreated::Created);
    assert_eq!(create(&store, "two", "b", false).await, TokenCreated::Stale);
    assert_eq!(create(&store, "two", "b", true).await, TokenCreated::Created);
    revoke(&store, &["one", "two"]).await;
    assert_eq!(create(&store, "three", "c", false).await, TokenCreated::Stale, "it had tokens before");
}

/// A new token does not get what was known by the name of a revoked one: responses, uploads, counts that were sent. Others keep theirs.
pub async fn a_new_token_inherits_nothing_of_a_revoked_one(store: Shared) {
    let hash = PayloadHash::from_bytes([7; 32]);
    register(&store, hash).await;
    assert_eq!(create(&store, "ops", "a", false).await, TokenCreated::Created);
    for who in ["ops", "ops-2"] {
        answer_and_count(&store, who, hash).await;
    }
    revoke(&store, &["ops"]).await;
    assert_eq!(create(&store, "ops", "b", true).await, TokenCreated::Created);
    let found = store.find_upload([7; 32]).await.expect("answered").expect("it is there");
    assert_eq!(found.brought_by, ["ops-2"]);
    for (who, is_new) in [("ops", true), ("ops-2", false)] {
        assert_eq!(begun(&store, who).await.answer.is_none(), is_new, "{who}");
        assert_eq!(count(&store, who).await, is_new, "{who}");
    }
}

async fn register(store: &Shared, hash: PayloadHash) {
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
}

async fn answer_and_count(store: &Shared, who: &str, hash: PayloadHash) {
    let upload = NoteUpload { who: who.to_owned(), sha256: [7; 32], hash, forget_before: at(0), now: at(1) };
    store.note_upload(upload).await.expect("noted");
    assert_eq!(begun(store, who).await.answer, None);
    let answer = KeptAnswer { request: "hash".to_owned(), status: 201, body: Vec::new() };
    let keep = KeepAnswer { who: who.to_owned(), key: "k".to_owned(), answer, now: at(1) };
    store.keep_answer(keep).await.expect("kept");
    assert!(count(store, who).await);
}

async fn begun(store: &Shared, who: &str) -> BegunRequest {
    let (who, key, request) = (who.to_owned(), "k".to_owned(), "hash".to_owned());
    store.begin_request(BeginRequest { who, key, request, since: at(0), now: at(1) }).await.expect("begun")
}

async fn count(store: &Shared, who: &str) -> bool {
    let client = format!("{who}/crawler");
    let params = CountOutcomes { client, seq: 1, counts: Vec::new(), forget_before: at(0), now: at(1) };
    store.count_outcomes(params).await.expect("answered")
}
