//! Where requests may go, with real listeners that see who comes.

use std::net::TcpListener;

use crate::support::bench::{Bench, config};
use crate::support::misbehaving::Misbehaving;
use redrive::handler::http::{HttpConfig, Proxy};
use redrive::{Reason, json};
use redrive_core::egress::Egress;

fn allowing(allow: &[&str]) -> HttpConfig {
    let mut asked = config();
    asked.transport.egress = Egress::only(allow).expect("valid");
    asked
}

/// A listener that answers nobody, and can say whether somebody came.
struct Silent(TcpListener);

impl Silent {
    fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        listener.set_nonblocking(true).expect("set");
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().expect("an address").port()
    }

    #[track_caller]
    fn assert_nobody_came(&self) {
        let error = self.0.accept().expect_err("somebody came");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
}

async fn refused(asked: HttpConfig, url: &str, said: &str) {
    let letter = Bench::new().run(asked, json!({"url": url})).await.expect("it fails");
    let found = (letter.reason, letter.code.as_deref());
    assert_eq!(found, (Reason::RejectedInput, Some("AddressNotAllowed")), "{url}: {}", letter.message);
    assert!(letter.message.contains(said), "{url}: {}", letter.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_is_not_this_machine_however_it_is_called() {
    let silent = Silent::at("127.0.0.1:0");
    let port = silent.port();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::1]"] {
        refused(allowing(&["public"]), &format!("http://{host}:{port}/"), "where this pipeline may not go").await;
    }
    refused(allowing(&["public"]), &format!("http://localhost:{port}/"), "localhost is at ").await;
    refused(allowing(&["public"]), &format!("https://u:p@127.0.0.1:{port}/"), "127.0.0.1 is at 127.0.0.1").await;
    silent.assert_nobody_came();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn networks_open_the_way_and_every_redirect_is_checked() {
    let (home, silent) = (Misbehaving::start(), Silent::at("127.0.0.2:0"));
    let local = home.url("/page").replace("127.0.0.1", "localhost");
    for url in [home.url("/page"), local, home.url("/redirect/3")] {
        assert_eq!(Bench::new().run(allowing(&["public", "127.0.0.0/8"]), json!({"url": url})).await, None, "{url}");
    }
    let onwards = format!("http://127.0.0.2:{}/", silent.port());
    let twice = home.url(&format!("/redirect-by/302/{}", home.url(&format!("/redirect-by/307/{onwards}"))));
    for url in [&onwards, &home.url(&format!("/redirect-by/302/{onwards}")), &twice] {
        refused(allowing(&["127.0.0.1/32"]), url, "127.0.0.2 is at 127.0.0.2").await;
    }
    silent.assert_nobody_came();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_a_proxy_addresses_are_checked_and_names_are_its_own() {
    let (proxy, silent) = (Misbehaving::start(), Silent::at("127.0.0.1:0"));
    let by = |host: &str| {
        let mut asked = allowing(&["public"]);
        let url = format!("http://{host}:{}", proxy.address().port());
        asked.transport.proxies = vec![Proxy { label: "eu-1".into(), url }];
        asked
    };
    refused(by("127.0.0.1"), &format!("http://127.0.0.1:{}/", silent.port()), "127.0.0.1 is at 127.0.0.1").await;
    assert_eq!(proxy.requests().len(), 0);
    for host in ["127.0.0.1", "localhost"] {
        let letter = Bench::new().run(by(host), json!({"url": "http://shop.invalid/page"})).await;
        assert_eq!(letter.and_then(|letter| letter.code).as_deref(), Some("http_404"), "it answers what it is");
    }
    assert!(proxy.requests().iter().all(|request| request["target"] == "http://shop.invalid/page"));
    assert_eq!(proxy.requests().len(), 2);
    silent.assert_nobody_came();
}
