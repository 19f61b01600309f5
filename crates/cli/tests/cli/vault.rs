//! The vault from outside: what belongs to whom, what is kept for how long, and what happens while it is away.

use serde_json::json;

use crate::harness::{DemoSite, Sandbox};

const SHOP: &str = r#"
[pipeline.shop]
handler = "http"
[pipeline.shop.retry]
attempts = 1
[pipeline.shop.extract.fields]
price = { select = "PRICE", type = "number" }
"#;

/// Asking anew may fail in a way that brings no page: the page that was saved before is still the letter's.
#[test]
fn a_refetch_that_fails_keeps_the_saved_page() {
    let sandbox = Sandbox::new();
    let site = DemoSite::start(&sandbox);
    sandbox.write("redrive.toml", SHOP.replace("PRICE", ".price-tag-main::text"));
    sandbox.write("tasks.jsonl", format!("{}\n", json!({"url": site.url("products/61")})));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let page = sandbox.dead().remove(0)["payload"].clone();
    assert!(page.is_string(), "the page is kept: {page}");
    drop(site);
    sandbox.redrive("replay start --pipeline shop --refetch").expect(3);
    let letter = sandbox.dead().remove(0);
    assert_eq!((&letter["reason"], &letter["replays"]), (&json!("network"), &json!(1)), "{letter}");
    assert_eq!(letter["payload"], page, "it has no newer one");
    let plan = sandbox.redrive("replay plan --pipeline shop --saved --json").expect(0).json();
    assert_eq!((&plan["included"], &plan["with_payload"]), (&json!(1), &json!(1)), "{plan}");
    sandbox.write("redrive.toml", SHOP.replace("PRICE", ".price data::attr(value)"));
    let tried = sandbox.redrive("replay try --pipeline shop --json").expect(0).json();
    assert_eq!((&tried["tried"], &tried["recovered"]), (&json!(1), &json!(1)), "{tried}");
    sandbox.redrive("replay start --pipeline shop --saved").expect(0);
    sandbox.assert_sound();
}
