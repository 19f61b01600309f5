//! A browser that is no more than a cookie: pages, forms and where they lead.

use std::sync::Mutex;
use std::time::Duration;

use super::running::{Answer, LOCAL, Running};

/// Somebody who looks at pages.
pub struct Browser<'a> {
    server: &'a Running,
    cookie: Mutex<Option<String>>,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Where it leads to.
    pub fn leads_to(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.text());
        self.header("location").expect("a place")
    }
}

impl<'a> Browser<'a> {
    /// Somebody of this machine, who came by the one-time link while the store had no token.
    pub fn new(server: &'a Running) -> Self {
        Self { server, cookie: Mutex::new(server.cookie.clone()) }
    }

    /// Somebody else of this machine, who signed in with what is in the token file.
    pub async fn another(server: &'a Running) -> Self {
        let browser = Self { server, cookie: Mutex::new(Some(String::new())) };
        assert_eq!(browser.send("POST", "/login", &[("token", LOCAL)]).await.leads_to(), "/");
        browser
    }

    /// Somebody of whom nothing is known.
    pub fn stranger(server: &'a Running) -> Self {
        Self { server, cookie: Mutex::new(Some(String::new())) }
    }

    /// Somebody who was here before this server began anew, with the cookie of then. Its name has the port.
    pub fn with_cookie(server: &'a Running, cookie: &str) -> Self {
        let (_, secret) = cookie.split_once('=').expect("a name and a secret");
        let cookie = format!("redrive-{}={secret}", server.address.port());
        Self { server, cookie: Mutex::new(Some(cookie)) }
    }

    /// Somebody who signed in with a token.
    pub async fn signed_in(server: &'a Running, token: &str) -> Self {
        let browser = Self::new(server);
        // Servers believe for a moment what they knew of tokens.
        while Self::new(server).get("/").await.status == 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let answer = browser.send("POST", "/login", &[("token", token), ("to", "/")]).await;
        assert_eq!(answer.leads_to(), "/");
        browser
    }

    /// Looks at a page.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[]).await
    }

    /// Looks at a page that must be there.
    pub async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        answer.text()
    }

    /// Fills in and sends a form of a page: the one that is sent to `action`, with its hidden fields.
    pub async fn submit(&self, page: &str, action: &str, filled: &[(&str, &str)]) -> Answer {
        let form = Form::of(page, action);
        self.post(&form, filled).await
    }

    /// Sends a form that was read before.
    pub async fn post(&self, form: &Form, filled: &[(&str, &str)]) -> Answer {
        let hidden = form.hidden.iter().filter(|(name, _)| !filled.iter().any(|(filled, _)| filled == name));
        let mut fields: Vec<(&str, &str)> = hidden.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        fields.extend_from_slice(filled);
        self.send("POST", &form.action, &fields).await
    }

    /// A request with whatever is to be sent.
    pub async fn send(&self, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}", self.server.address);
        if let Some(cookie) = self.cookie.lock().expect("not poisoned").as_ref() {
            head += &format!("\r\ncookie: {cookie}");
        }
        if method == "POST" {
            head += &format!(
                "\r\ncontent-type: application/x-www-form-urlencoded\r\norigin: http://{}",
                self.server.address
            );
        }
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let answer = self.server.send(&head, body.as_bytes()).await;
        if let Some(given) = answer.header("set-cookie") {
            let pair = given.split(';').next().expect("a pair").to_owned();
            *self.cookie.lock().expect("not poisoned") = Some(pair);
        }
        answer
    }

    /// The cookie that it has.
    pub fn cookie(&self) -> Option<String> {
        self.cookie.lock().expect("not poisoned").clone()
    }
}

/// A form of a page, with its hidden fields.
pub struct Form {
    pub action: String,
    pub hidden: Vec<(String, String)>,
}

impl Form {
    /// The first form of a page that is sent to an address.
    pub fn of(page: &str, action: &str) -> Self {
        let marks = [format!("action=\"{action}\"")];
        let at =
            marks.iter().find_map(|mark| page.find(mark)).unwrap_or_else(|| panic!("no form for {action} in {page}"));
        let form = &page[at..page[at..].find("</form>").map_or(page.len(), |end| at + end)];
        let inputs = form.split("<input").skip(1).filter(|input| input.contains("type=\"hidden\""));
        let hidden = inputs.filter_map(|input| Some((attribute(input, "name")?, attribute(input, "value")?)));
        Self { action: action.to_owned(), hidden: hidden.collect() }
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let from = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    let text = &tag[from..from + tag[from..].find('"')?];
    Some(text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}
