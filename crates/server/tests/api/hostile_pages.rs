//! Saved pages are hostile: shown in a real browser they reach nobody. The same page as it is does, which shows that the listener hears.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::compared::pair_with;
use crate::running::{LOCAL, Running, tools};

/// How long a browser may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(180);

/// A page that tries every way out, to a listener.
fn hostile(at: &str) -> String {
    format!(
        r#"<!doctype html><html><head><title>x</title>
<link rel="preconnect" href="http://{at}"><link rel="dns-prefetch" href="http://{at}"><link rel="stylesheet" href="http://{at}/a.css">
<link rel="prefetch" href="http://{at}/p"><link rel="icon" href="http://{at}/i"><base href="http://{at}/">
<meta http-equiv="refresh" content="0;url=http://{at}/refresh"><style>@import url(http://{at}/b.css); body {{ background: url(http://{at}/bg) }}</style>
<script>window.hacked = 1; top.hacked = 1; fetch("http://{at}/fetch"); new Image().src = "http://{at}/img"; navigator.sendBeacon("http://{at}/beacon");</script>
</head><body onload="fetch('http://{at}/onload')" background="http://{at}/body"><h1 class="title">Cork bread board</h1>
<img src="http://{at}/img.png" srcset="http://{at}/set 2x" onerror="alert(1)"><picture><source srcset="http://{at}/source"><img src="x"></picture>
<iframe src="http://{at}/frame"></iframe><iframe srcdoc="<img src='http://{at}/doc'>"></iframe><object data="http://{at}/object"></object>
<embed src="http://{at}/embed"><video src="http://{at}/video" poster="http://{at}/poster" autoplay></video><audio src="http://{at}/audio" autoplay></audio>
<svg onload="fetch('http://{at}/svg')"><image href="http://{at}/svgimg"/><use href="http://{at}/use#x"/></svg>
<math><mtext><style><img src="http://{at}/math"></style></mtext></math><input type="image" src="http://{at}/input">
<form action="http://{at}/form"><button autofocus onfocus="this.form.submit()">go</button></form>
<style>@font-face {{ font-family: x; src: url(http://{at}/font) }} h1 {{ font-family: x; background: image-set("http://{at}/set" 1x) }}</style>
<link rel="modulepreload" href="http://{at}/module.js"><script type="speculationrules">{{"prefetch":[{{"urls":["http://{at}/rules"]}}]}}</script>
<table><tr><td background="http://{at}/td">cell</td></tr></table><button formaction="http://{at}/formaction" autofocus onfocus="this.click()">go</button>
<svg><use xlink:href="http://{at}/xlink#x"/><image xlink:href="http://{at}/xlinkimg"/></svg><p style="background: \75rl(http://{at}/escape)">escaped</p>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=http://{at}/mxss onerror=fetch(1)&gt;"></table></mtext></math>
<form><math><mtext></form><form><mglyph><style></math><img src="http://{at}/mxss2" onerror="fetch('http://{at}/mxss3')"></style></mglyph></form></mtext></math>
<title><img src="http://{at}/title"></title><textarea><img src="http://{at}/area"></textarea><xmp><img src="http://{at}/xmp"></xmp>
<frameset><frame src="http://{at}/frameset"></frameset><p style="background: url(http://{at}/style)">styled</p><a href="javascript:fetch('http://{at}/js')" ping="http://{at}/ping">link</a>
<noscript><img src="http://{at}/noscript"></noscript><template><img src="http://{at}/template"></template><plaintext><img src="http://{at}/plain">"#
    )
}

async fn browser(how: &str, what: &str) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/hostile.mjs");
    let mut node = Command::new("node");
    node.args([script, how, what]).env("TOOLS", tools().join("node/node_modules")).env("LOCAL", LOCAL);
    let run = node.stdin(Stdio::null()).kill_on_drop(true).output();
    let run = tokio::time::timeout(PATIENCE, run).await.expect("done in time").expect("node runs");
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{how}: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_page_reaches_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let at = listener.local_addr().expect("an address").to_string();
    let reached = Arc::new(AtomicUsize::new(0));
    let heard = Arc::clone(&reached);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            heard.fetch_add(1, Ordering::SeqCst);
            drop(connection);
        }
    });
    let server = Running::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hostile.html");
    std::fs::write(&file, hostile(&at)).expect("written");
    let out =
        format!("<img src=http://{at}/told onerror=fetch('http://{at}/told')><script src=http://{at}/s></script>");
    let payload =
        json!({ "text": hostile(&at), "status": 200, "headers": [["x-evil", out], ["content-type", "text/html"]] });
    let failure = json!({ "reason": "schema_validation", "message": out, "stack": out, "stderr": out, "code": out, "proxy": out });
    let letter = pair_with(&server, payload.clone(), (failure, payload)).await;
    browser("shown", &format!("http://{}/letters/{letter}", server.address)).await;
    assert_eq!(reached.load(Ordering::SeqCst), 0, "what is shown reached somebody");
    browser("raw", &file.display().to_string()).await;
    assert!(reached.load(Ordering::SeqCst) > 0, "nobody would have heard it");
}
