//! `redrive token`.

use serde_json::json;

use crate::harness::Sandbox;

#[test]
fn a_secret_is_printed_once_and_alone() {
    let sandbox = Sandbox::new();
    sandbox.redrive("token create eve --role viewer").expect(1).complains("must have the role admin");
    let made = sandbox.redrive("token create ops --role admin").expect(0);
    let secret = made.stdout.trim_end();
    assert!(secret.starts_with("rdr_") && secret.lines().count() == 1, "{secret}");
    let limited = sandbox.redrive("token create crawler --role worker -p shop-* --no-payloads --expires 90d --json");
    assert_eq!(limited.expect(0).json()["pipelines"], json!(["shop-*"]));
    let listed = sandbox.redrive("token list --json").expect(0);
    assert!(!listed.stdout.contains(secret), "{}", listed.stdout);
    let names: Vec<_> = listed.json_lines().iter().map(|token| token["name"].clone()).collect();
    assert_eq!(names, ["ops", "crawler"]);
    sandbox.redrive("token create ops --role admin").expect(1).complains("there is a token ops already");
    sandbox.redrive("token create x --role admin --expires 2001-01-01").expect(1).complains("which is over");
    sandbox.redrive("token revoke nobody").expect(1).complains("there are ops, crawler");
    sandbox.redrive("token revoke crawler").expect(0);
    assert!(sandbox.redrive("token list").expect(0).stdout.contains("revoked"));
    let noted = sandbox.redrive("activity --json").expect(0).json_lines();
    assert_eq!(noted[0]["object"], "token crawler");
}

#[test]
fn a_reset_leaves_one_token() {
    let sandbox = Sandbox::new();
    sandbox.redrive("token create ops --role admin").expect(0);
    let secret = sandbox.redrive("token reset").expect(0).stdout;
    assert!(secret.starts_with("rdr_"), "{secret}");
    let good = |token: &serde_json::Value| token["revoked_at"].is_null();
    let tokens = sandbox.redrive("token list --json").expect(0).json_lines();
    let names: Vec<_> = tokens.iter().filter(|token| good(token)).map(|token| token["name"].clone()).collect();
    assert_eq!(names, ["admin"]);
}
