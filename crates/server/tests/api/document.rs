//! The OpenAPI document.

use crate::running::Running;

/// Where it is kept, for who reads it without a server.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_served_as_it_is_kept() {
    let server = Running::start().await;
    let served = server.get("/openapi.json").await.ok();
    assert_eq!(served["openapi"], "3.1.0");
    let text = format!("{}\n", serde_json::to_string_pretty(&served).expect("JSON"));
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(KEPT, &text).expect("written");
    }
    let kept = std::fs::read_to_string(KEPT).unwrap_or_default();
    assert!(kept == text, "docs/openapi.json is not what the routes say: write it anew with UPDATE_OPENAPI=1");
}
