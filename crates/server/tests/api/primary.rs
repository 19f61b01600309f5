//! Every page of a store with pipelines in many states is walked, and each primary button is pressed: none leads to an error.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use redrive_core::tokens::Role;
use scraper::{ElementRef, Html, Selector};
use serde_json::{Value, json};

use crate::browsing::Browser;
use crate::replays::work;
use crate::running::Running;

/// The most pages of one kind that are walked: those about one thing, and those of lists, by what is chosen there.
const THINGS_MAX: usize = 40;
const CHOICES_MAX: usize = 3;

/// Most presses of controls that look alike.
const PRESSED_MAX: usize = 4;

/// The most redirects in a row.
const REDIRECTS_MAX: usize = 5;

const CONFIG: &str = r#"
[pipeline.shop]
handler = "http"
[pipeline.shop.extract.fields]
title = "h1::text"
price = { select = ".old::text", type = "number" }
[pipeline.catalog]
command = ["sh", "-c", "read -r job; echo '{\"price\":5}'"]
pure = true
"#;

const PIPELINES: [&str; 10] =
    ["shop", "catalog", "api", "gone", "solver", "running", "resting", "paused", "held", "reported"];

/// A control of a page that leads somewhere, as a browser would send it.
#[derive(Clone, Debug)]
struct Control {
    says: String,
    method: &'static str,
    to: String,
    fields: Vec<(String, String)>,
}

/// A page as it was read.
struct Seen {
    title: String,
    /// Addresses of pages that it leads to.
    links: Vec<String>,
    /// Its primary buttons, those that answer a question, and those that ask one (`…`).
    controls: Vec<Control>,
    /// Mistakes that it names.
    mistakes: Vec<String>,
    /// Subject of a question.
    about: Option<String>,
    /// Effect that it names.
    headline: String,
}

fn all<'a>(element: ElementRef<'a>, css: &str) -> Vec<ElementRef<'a>> {
    let selector = Selector::parse(css).expect("a selector");
    element.select(&selector).collect()
}

fn words(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Seen {
    fn read(page: &str, here: &str) -> Self {
        let document = Html::parse_document(page);
        let root = document.root_element();
        let links = all(root, "a[href^='/']").into_iter().filter_map(|a| a.attr("href")).map(str::to_owned).collect();
        let wanted = "a.primary, button.primary, form.ask button, form button, main a.button";
        let is_pressed = |control: &ElementRef<'_>| {
            let value = control.value();
            let asks = words(*control).ends_with('…');
            let answers = control
                .ancestors()
                .filter_map(ElementRef::wrap)
                .any(|above| above.value().name() == "form" && above.value().classes().any(|class| class == "ask"));
            value.attr("disabled").is_none()
                && (value.classes().any(|class| class == "primary") || asks || (answers && value.name() == "button"))
        };
        let controls = all(root, wanted).into_iter().filter(is_pressed);
        let mistakes = all(root, "[role=alert], [aria-invalid=true]").into_iter().map(words).collect();
        Self {
            title: all(root, "h1").first().map(|h1| words(*h1)).unwrap_or_default(),
            links,
            controls: controls.filter_map(|control| Control::read(control, root, here)).collect(),
            mistakes,
            headline: all(root, ".headline").into_iter().map(words).collect(),
            about: all(root, "#about").first().map(|about| words(*about)),
        }
    }
}

impl Control {
    fn read(control: ElementRef<'_>, root: ElementRef<'_>, here: &str) -> Option<Self> {
        let says = words(control);
        let own = here.split('?').next().unwrap_or_default();
        if control.value().name() == "a" {
            let href = control.attr("href").unwrap_or_else(|| panic!("{here}: {says:?} leads nowhere"));
            if let Some(id) = href.strip_prefix('#') {
                assert!(
                    !all(root, &format!("[id='{id}']")).is_empty(),
                    "{here}: {says:?} leads to no place of the page"
                );
                return None;
            }
            return Some(Self { says, method: "GET", to: href.to_owned(), fields: Vec::new() });
        }
        let form = control.ancestors().filter_map(ElementRef::wrap).find(|above| above.value().name() == "form");
        let form = form.unwrap_or_else(|| panic!("{here}: {says:?} belongs to no form"));
        let mut fields: Vec<_> =
            all(form, "input, select, textarea").into_iter().filter_map(|field| filled(field, root)).collect();
        if let Some(name) = control.attr("name") {
            fields.push((name.to_owned(), control.attr("value").unwrap_or_default().to_owned()));
        }
        let to = control.attr("formaction").or_else(|| form.attr("action")).unwrap_or(own).to_owned();
        let method = if form.attr("method") == Some("post") { "POST" } else { "GET" };
        Some(Self { says, method, to, fields })
    }
}

/// A field as somebody sends it who ticks all boxes, and fills in what must be.
fn filled(field: ElementRef<'_>, root: ElementRef<'_>) -> Option<(String, String)> {
    let (name, is_required) = (field.attr("name")?.to_owned(), field.attr("required").is_some());
    if field.attr("disabled").is_some() {
        return None;
    }
    let value = field.attr("value").unwrap_or_default();
    let value = match (field.value().name(), field.attr("type").unwrap_or("text")) {
        ("select", _) => {
            let chosen =
                all(field, "option[selected]").first().copied().or_else(|| all(field, "option").first().copied())?;
            chosen.attr("value").map_or_else(|| words(chosen), str::to_owned)
        }
        ("textarea", _) => edited(&field.text().collect::<String>()),
        (_, "radio") => return field.attr("checked").map(|_| (name, value.to_owned())),
        (_, "checkbox") => value.to_owned(),
        (_, _) if !is_required || !value.is_empty() => value.to_owned(),
        (_, _) => {
            let label = field.attr("id").map(|id| all(root, &format!("label[for='{id}']"))).unwrap_or_default();
            let label = label.first().map(|label| words(*label)).unwrap_or_default();
            let known =
                field.attr("list").map(|id| all(root, &format!("datalist[id='{id}'] option"))).unwrap_or_default();
            if let Some(known) = known.first().and_then(|known| known.attr("value")) {
                return Some((name, known.to_owned()));
            }
            let number: String = label.chars().filter(char::is_ascii_digit).collect();
            match &*name {
                "count" => number,
                "until" => "2h".to_owned(),
                "rate" => "5/s".to_owned(),
                _ => "for-the-record".to_owned(),
            }
        }
    };
    Some((name, value))
}

/// An input with all that is masked filled in, and one more field.
fn edited(input: &str) -> String {
    let Ok(mut input) = serde_json::from_str::<Value>(input) else { return input.to_owned() };
    fn fill(value: &mut Value) {
        match value {
            Value::String(text) if text.contains("[masked]") || text.contains("***") => *text = "mine".to_owned(),
            Value::Object(fields) => fields.values_mut().for_each(fill),
            _ => {}
        }
    }
    fill(&mut input);
    input["looked_at"] = json!(true);
    input.to_string()
}

/// A walk of somebody through all pages.
struct Walk<'a> {
    browser: &'a Browser<'a>,
    who: &'static str,
    wrong: Vec<String>,
    pressed: usize,
    /// Counts the pages of a kind that were seen, and the presses of a control of a kind.
    kinds: BTreeMap<String, usize>,
    questions: BTreeSet<String>,
}

impl Walk<'_> {
    /// Follows an address to its page. Returns nothing if there is no page.
    async fn look(&mut self, control: &Control, on: &str) -> Option<(String, Seen)> {
        let (mut method, mut to) = (control.method, control.to.clone());
        for _ in 0..REDIRECTS_MAX {
            to = to.split('#').next().unwrap_or_default().to_owned();
            let fields: Vec<_> = control.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
            let answer = match method {
                "POST" => self.browser.send("POST", &to, &fields).await,
                _ if fields.is_empty() || to != control.to => self.browser.get(&to).await,
                _ => {
                    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&fields).finish();
                    to = format!("{}?{query}", to.split('?').next().unwrap_or_default());
                    self.browser.get(&to).await
                }
            };
            if answer.status == 303 {
                (method, to) = ("GET", answer.leads_to().to_owned());
                continue;
            }
            // A letter that a replay took meanwhile: what was seen of it is old, and its page is no page of a dead letter any more.
            if answer.status == 409 && control.says == "a link" {
                return None;
            }
            if answer.status != 200 {
                let why = Seen::read(&answer.text(), &to).title;
                let said = answer.text();
                let said = said
                    .split("class=\"headline")
                    .nth(1)
                    .and_then(|rest| rest.get(..400.min(rest.len())).map(str::to_owned));
                self.wrong.push(format!(
                    "{}: {on}: {:?} {} {to}: {} {why} {said:?}",
                    self.who, control.says, control.method, answer.status
                ));
                return None;
            }
            let is_page = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
            return is_page.then(|| (to.clone(), Seen::read(&answer.text(), &to)));
        }
        self.wrong.push(format!("{}: {on}: {:?} leads on without end: {to}", self.who, control.says));
        None
    }

    /// Presses a control, and those of the pages that it leads to, which stand at no address.
    async fn press(&mut self, control: &Control, on: &str, depth: usize) {
        self.pressed += 1;
        let Some((at, seen)) = self.look(control, on).await else { return };
        if !seen.mistakes.is_empty() {
            self.wrong.push(format!("{}: {on}: {:?} {}: {:?}", self.who, control.says, control.to, seen.mistakes));
        }
        self.note(&seen, &at);
        if depth > 0 {
            let answers = seen
                .controls
                .iter()
                .filter(|next| next.method == "POST" && next.to != control.to || seen.about.is_some());
            // What stands there twice, for a wide screen and for a narrow one, is pressed once: the page is not read again.
            let mut pressed = BTreeSet::new();
            for next in answers.filter(|next| pressed.insert((&next.to, &next.says))) {
                Box::pin(self.press(next, &format!("{on} > {at}"), depth - 1)).await;
            }
        }
    }

    /// A question names what it is about: the cause or the letters, the pipeline and how many.
    fn note(&mut self, seen: &Seen, at: &str) {
        if !seen.title.ends_with('?') {
            return;
        }
        let about = seen.about.clone().unwrap_or_default();
        let is_named = PIPELINES.iter().any(|name| about.contains(name));
        if !is_named || !format!("{} {about} {}", seen.title, seen.headline).contains(|c: char| c.is_ascii_digit()) {
            self.wrong.push(format!("{}: {at}: {:?} does not say what it is about: {about:?}", self.who, seen.title));
        }
        self.questions.insert(seen.title.clone());
    }

    fn is_new_enough(&mut self, kind: String, most: usize) -> bool {
        let seen = self.kinds.entry(kind).or_default();
        *seen += 1;
        *seen <= most
    }

    /// Follows every link; says which pages there are.
    async fn pages(&mut self) -> Vec<String> {
        let mut found = BTreeSet::from(["/".to_owned(), "/settings/tokens".to_owned()]);
        let mut queue: VecDeque<String> = found.iter().cloned().collect();
        let mut pages = Vec::new();
        while let Some(path) = queue.pop_front() {
            let link = Control { says: "a link".to_owned(), method: "GET", to: path.clone(), fields: Vec::new() };
            let Some((_, seen)) = self.look(&link, &path).await else { continue };
            self.note(&seen, &path);
            for link in &seen.links {
                let link = link.split('#').next().unwrap_or_default();
                if !link.starts_with("/assets/") && found.insert(link.to_owned()) {
                    let most = if link.contains('?') { CHOICES_MAX } else { THINGS_MAX };
                    if self.is_new_enough(kind(link), most) {
                        queue.push_back(link.to_owned());
                    }
                }
            }
            pages.push(path);
        }
        pages
    }

    /// Presses what is on a page, one after the other, each on the page as it is then.
    async fn press_all(&mut self, path: &str) {
        for n in 0.. {
            let link = Control { says: "a link".to_owned(), method: "GET", to: path.to_owned(), fields: Vec::new() };
            // What was pressed before may have taken away what it was about.
            let answer = self.browser.get(path).await;
            if answer.status != 200 {
                return;
            }
            let Some((_, seen)) = self.look(&link, path).await else { return };
            let Some(control) = seen.controls.get(n) else { return };
            let says: String = control.says.chars().filter(|c| !c.is_ascii_digit()).collect();
            if self.is_new_enough(format!("{says} {} {}", kind(path), kind(&control.to)), PRESSED_MAX) {
                self.press(control, path, 3).await;
            }
        }
    }
}

/// Returns what is alike about addresses: their path without ids, and what is chosen by name.
fn kind(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let is_id = |part: &&str| part.len() >= 8 && part.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let path: Vec<&str> = path.split('/').map(|part| if is_id(&part) { "ID" } else { part }).collect();
    let chosen = form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty());
    let chosen = chosen.map(|(name, value)| match &*name {
        "verb" | "tab" | "view" | "state" | "from" => format!("{name}={value}"),
        _ => name.into_owned(),
    });
    let mut chosen: Vec<String> = chosen.collect();
    chosen.sort();
    format!("{}?{}", path.join("/"), chosen.join("&"))
}

/// Letters of a pipeline, with a page each or without.
async fn letters(server: &Running, pipeline: &str, many: u32, more: Value) {
    let letter = |n: u32| {
        let mut letter = json!({
            "pipeline": pipeline, "input": { "url": format!("https://{pipeline}.example/p/{n}") }, "message": "no price",
        });
        let fields = letter.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        if more.get("payload").is_some() {
            fields["payload"] = json!({ "text": format!("<h1>{n}</h1><b class=new>{n}.50</b>"), "status": 200 });
        }
        letter
    };
    server.post("/letters", json!((0..many).map(letter).collect::<Vec<_>>())).await.ok();
}

/// Starts a replay that some worker elsewhere works on.
async fn replay(server: &Running, pipeline: &str, name: &str) -> String {
    let asked = json!({ "letters": { "pipeline": pipeline }, "name": name, "force": true, "why": "to see" });
    server.post("/replays", asked).await.ok()["replay"]["id"].as_str().expect("an id").to_owned()
}

/// Pipelines in all states that a page shows.
async fn store() -> Running {
    let server = Running::with(CONFIG).await;
    let failed = json!({ "verdict": "failed", "failure": { "message": "no price", "reason": "schema_validation" } });
    // Lists are newest first: there are pages of the others, too.
    letters(&server, "api", 130, json!({ "reason": "blocked", "http_status": 403 })).await;
    letters(&server, "shop", 3, json!({ "message": "it is late", "reason": "timeout" })).await;
    let done = replay(&server, "shop", "finished").await;
    work(&server, &done, &json!({ "verdict": "done" })).await;
    letters(&server, "shop", 12, json!({ "reason": "schema_validation", "payload": true })).await;
    letters(&server, "shop", 2, json!({ "message": "no title", "error_type": "KeyError" })).await;
    let stopped = replay(&server, "shop", "stopped by itself").await;
    work(&server, &stopped, &failed).await;
    server.until(&format!("/replays/{stopped}"), |replay| replay["state"] == "paused").await;
    let cancelled = replay(&server, "shop", "taken back").await;
    server.post(&format!("/replays/{cancelled}/cancel"), json!({})).await.ok();
    letters(&server, "catalog", 4, json!({ "payload": true })).await;
    letters(&server, "gone", 3, json!({ "reason": "payload_expired" })).await;
    letters(&server, "solver", 2, json!({ "input": { "url": "https://solver.example/", "token": "s3cret" } })).await;
    letters(&server, "running", 6, json!({ "message": "it is late", "reason": "timeout" })).await;
    replay(&server, "running", "under way").await;
    letters(&server, "resting", 6, json!({ "message": "it is late", "reason": "timeout" })).await;
    let resting = replay(&server, "resting", "rests").await;
    server.post(&format!("/replays/{resting}/pause"), json!({})).await.ok();
    server.enqueue("paused", [json!({ "url": "https://paused.example/1" })]).await;
    server.post("/pipelines/paused/pause", json!({ "why": "it moves" })).await.ok();
    server.enqueue("held", [json!({ "url": "https://held.example/1" })]).await;
    let hold = json!({ "target": "held.example", "pipeline": "held", "until": "2h", "why": "they asked" });
    server.post("/breakers/hold", hold).await.ok();
    let outcomes = json!({ "pipeline": "reported", "target": "reported.example", "done": 50 });
    server.post("/outcomes", json!({ "client": "crawler", "seq": 1, "counts": [outcomes] })).await.ok();
    let causes = server.get("/causes?limit=50").await.ok();
    let cause = |pipeline: &str| {
        let all = causes["items"].as_array().expect("causes");
        let one = all.iter().find(|cause| cause["pipeline"] == pipeline).expect("a cause");
        one["id"].as_str().expect("an id").to_owned()
    };
    for (pipeline, verb) in [("gone", "mute"), ("catalog", "resolve")] {
        server.post(&format!("/causes/{}/changes", cause(pipeline)), json!({ "verb": verb })).await.ok();
    }
    server.redrive.judge_alerts(&redrive::alerts::Watching::default()).await.expect("judged");
    server
}

async fn walk(browser: &Browser<'_>, who: &'static str) -> (usize, BTreeSet<String>) {
    let mut walk =
        Walk { browser, who, wrong: Vec::new(), pressed: 0, kinds: BTreeMap::new(), questions: BTreeSet::new() };
    let pages = walk.pages().await;
    for path in &pages {
        walk.press_all(path).await;
    }
    assert!(
        walk.wrong.is_empty(),
        "{} pages, {} pressed, wrong:\n{}",
        pages.len(),
        walk.pressed,
        walk.wrong.join("\n")
    );
    (walk.pressed, walk.questions)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_primary_button_of_any_page_leads_to_an_error() {
    let server = store().await;
    let (pressed, questions) = walk(&Browser::new(&server), "somebody of this machine").await;
    assert!(pressed > 100, "{pressed}");
    for begins in ["Discard", "Mute", "Merge", "Retry", "Fetch", "Resume", "Cancel", "Pause"] {
        assert!(questions.iter().any(|title| title.starts_with(begins)), "{begins}: {questions:?}");
    }
    server.audit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_primary_button_of_an_empty_store_leads_to_an_error() {
    let server = Running::start().await;
    walk(&Browser::new(&server), "somebody of an empty store").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_primary_button_leads_who_may_less_to_an_error() {
    let server = store().await;
    server.token("boss", Role::Admin, &[]).await;
    let viewer = server.token("viewer", Role::Viewer, &[]).await;
    let some = server.token("some", Role::Operator, &["shop", "solver"]).await;
    walk(&Browser::signed_in(&server, &viewer).await, "a viewer").await;
    walk(&Browser::signed_in(&server, &some).await, "an operator of two pipelines").await;
}
