//! What becomes of real text on pages: numbers, charsets, selectors, addresses.

use serde_json::{Value, json};

use crate::harness::{Sandbox, json_lines};
use crate::pages::Pages;

/// Runs a pipeline with these fields over paths of a site; gives the results by path.
fn extract(sandbox: &Sandbox, site: &Pages, fields: &str, paths: &[&str], code: i32) -> Vec<Value> {
    let config = "[pipeline.p]\nhandler = \"http\"\nout = \"out.jsonl\"\n[pipeline.p.extract.fields]\n";
    sandbox.write("redrive.toml", format!("{config}{fields}\n"));
    let tasks = paths.iter().map(|path| json!({"url": site.url(path), "fields": fields}).to_string() + "\n");
    sandbox.write("tasks.jsonl", tasks.collect::<String>());
    sandbox.write("out.jsonl", "");
    sandbox.redrive("run tasks.jsonl").expect(code);
    let results = json_lines(&sandbox.read("out.jsonl"));
    let result = |path: &&str| {
        let found = results.iter().find(|result| result["input"]["url"] == site.url(path));
        found.map_or(Value::Null, |result| result["result"].clone())
    };
    paths.iter().map(result).collect()
}

fn message(sandbox: &Sandbox, site: &Pages, path: &str) -> String {
    let letter = sandbox.dead().into_iter().find(|letter| letter["input"]["url"] == site.url(path));
    letter.unwrap_or_else(|| panic!("{path} is not dead"))["message"].as_str().expect("a message").to_owned()
}

#[test]
fn a_price_is_never_wrong_by_a_factor_of_1000() {
    let sandbox = Sandbox::new();
    let page = |price: &str| format!("<meta charset=utf-8><b class=price>{price}</b>");
    let site = Pages::html([
        ("/point", page("1.299 €")),
        ("/comma", page("$1,299")),
        ("/dash", page("2.499,- €")),
        ("/cents", page("1.299,00 €")),
    ]);
    let paths = ["/point", "/comma", "/dash", "/cents"];
    let results = extract(&sandbox, &site, "price = { select = \".price\", type = \"number\" }", &paths, 3);
    let prices: Vec<_> = results.iter().map(|result| result["price"].to_string()).collect();
    assert_eq!(prices, ["null", "null", "2499", "1299.00"]);
    let said = message(&sandbox, &site, "/point");
    assert_eq!(
        said,
        "AmbiguousNumber: .price (field price): \"1.299 €\" is 1.299 with decimal = \".\" and 1299 with decimal = \",\": \
         say which for this field"
    );
    let causes = sandbox.redrive("cause list --json").expect(0).json_lines();
    assert_eq!(causes.len(), 1, "one mistake in the rules, one cause: {causes:?}");

    let stated = "price = { select = \".price\", type = \"number\", decimal = \",\" }";
    let results = extract(&sandbox, &site, stated, &["/point", "/dash", "/cents"], 0);
    let prices: Vec<_> = results.iter().map(|result| result["price"].to_string()).collect();
    assert_eq!(prices, ["1299", "2499", "1299.00"]);
}

#[test]
fn a_charset_that_is_declared_late_is_found() {
    let sandbox = Sandbox::new();
    let script = format!("<html><head><script>{}</script>", "var a = 1 < 2;\n".repeat(300));
    let page = [script.as_bytes(), b"<meta charset=windows-1252></head><h1>Caf\xe9 \x80 5</h1>"].concat();
    let site = Pages::html([("/late", page)]);
    let results = extract(&sandbox, &site, "title = \"h1\"", &["/late"], 0);
    assert_eq!(results[0]["title"], "Café € 5");
}

#[test]
fn an_attribute_is_taken_from_the_first_element_that_has_it() {
    let sandbox = Sandbox::new();
    let site = Pages::html([
        ("/some", "<time>today</time><time datetime=2024-01-02>then</time>"),
        ("/none", "<time>today</time>"),
        ("/nothing", "<p>"),
    ]);
    let field = "at = \"time::attr(datetime)\"";
    let results = extract(&sandbox, &site, field, &["/some", "/none", "/nothing"], 3);
    assert_eq!(results[0]["at"], "2024-01-02");
    assert_eq!(message(&sandbox, &site, "/none"), "AttributeNotFound: time::attr(datetime) (field at)");
    assert_eq!(message(&sandbox, &site, "/nothing"), "SelectorNotFound: time::attr(datetime) (field at)");
}

#[test]
fn an_optional_field_of_another_type_is_null_and_counted() {
    let sandbox = Sandbox::new();
    let site = Pages::html([("/a", "<h1>A</h1><b>Sold out</b>"), ("/b", "<h1>B</h1><b>5</b>")]);
    let fields = "title = \"h1\"\nprice = { select = \"b\", type = \"number\", required = false }";
    let results = extract(&sandbox, &site, fields, &["/a", "/b"], 0);
    assert_eq!((&results[0]["price"], &results[1]["price"]), (&json!(null), &json!(5)));
    let report = sandbox.redrive("report --json").expect(0).stdout;
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let fields = report["fields"].as_array().expect("fields");
    let price = fields.iter().find(|field| field["field"] == "price").unwrap_or_else(|| panic!("{fields:?}"));
    assert_eq!((&price["records"], &price["filled"]), (&json!(2), &json!(1)), "{price}");
}

#[test]
fn a_failure_names_every_missing_field_and_is_grouped_by_the_first() {
    let sandbox = Sandbox::new();
    let site = Pages::html([("/one", "<i>x</i><b>1</b>"), ("/two", "<i>x</i>"), ("/three", "<p>")]);
    let fields = "title = \"h1\"\nprice = { select = \"b\", type = \"number\" }\nsku = \"i\"";
    extract(&sandbox, &site, fields, &["/one", "/two", "/three"], 3);
    let first = "SelectorNotFound: h1 (field title)";
    assert_eq!(message(&sandbox, &site, "/one"), first);
    assert_eq!(
        message(&sandbox, &site, "/three"),
        format!("{first}\nDETAIL: also SelectorNotFound: b (field price); SelectorNotFound: i (field sku)")
    );
    let causes = sandbox.redrive("cause list --json").expect(0).json_lines();
    assert_eq!((causes.len(), &causes[0]["dead"]), (1, &json!(3)), "{causes:?}");
    let misses = |path: &str| {
        let letters = sandbox.dead();
        let letter = letters.iter().find(|letter| letter["input"]["url"] == site.url(path)).expect("a letter");
        letter["failures"][0]["misses"].clone()
    };
    let miss = |rule: &str, field: &str| json!({"field": field, "rule": rule, "code": "SelectorNotFound"});
    assert_eq!(misses("/one"), json!([miss("h1", "title")]));
    assert_eq!(misses("/three"), json!([miss("h1", "title"), miss("b", "price"), miss("i", "sku")]), "one by one");
}

#[test]
fn masking_a_secret_leaves_what_stands_behind_it() {
    let sandbox = Sandbox::new();
    let script = "read x; echo \"asked (https://h/in.php?key=$(echo $x | md5sum | cut -c1-9)): refused\" >&2; exit 64";
    sandbox.write("fail.sh", script);
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    sandbox.redrive("run tasks.jsonl -- sh fail.sh").expect(3);
    let messages: Vec<_> = sandbox.dead().iter().map(|letter| letter["message"].clone()).collect();
    for message in &messages {
        assert_eq!(message, "asked (https://h/in.php?key=***): refused");
    }
    assert_eq!(sandbox.redrive("cause list --json").expect(0).json_lines().len(), 1);
}

#[test]
fn a_wrong_selector_says_what_to_write_instead() {
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"url\":\"http://127.0.0.1:1/\"}\n");
    for (selector, expected) in [
        ("//h1", "field title (//h1): not a CSS selector: it is XPath; in CSS it is `h1`"),
        ("p:contains(x)", "`:contains` at character 2 is jQuery's, not CSS"),
        ("li:first", "the first match is taken anyway"),
    ] {
        let config = format!("[pipeline.p]\nhandler = \"http\"\n[pipeline.p.extract.fields]\ntitle = \"{selector}\"\n");
        sandbox.write("redrive.toml", config);
        let ran = sandbox.redrive("run tasks.jsonl").expect(2).complains(expected);
        assert!(!ran.stderr.contains("developer"), "{}", ran.stderr);
    }
}

#[test]
fn a_placeholder_with_a_plus_keeps_its_slashes() {
    let sandbox = Sandbox::new();
    let site = Pages::html([("/a/b?c=1", "<h1>here</h1>")]);
    let config = |url: &str| {
        format!("[pipeline.p]\nhandler = \"http\"\nrequest.url = \"{url}\"\nextract.fields.title = \"h1\"\n")
    };
    sandbox.write("tasks.jsonl", "{\"path\":\"/a/b?c=1\"}\n");
    sandbox.write("redrive.toml", config(&site.url("{path}")));
    sandbox.redrive("run tasks.jsonl").expect(3);
    let said = sandbox.dead()[0]["message"].as_str().expect("a message").to_owned();
    assert!(said.ends_with("write {+path} to keep the slashes of its value"), "{said}");
    sandbox.write("redrive.toml", config(&site.url("{+path}")));
    let ran = sandbox.redrive("run tasks.jsonl --store memory:").expect(0);
    assert_eq!(ran.json_lines()[0]["result"]["title"], "here");
    sandbox.write("tasks.jsonl", "{\"path\":\"@127.0.0.2/\"}\n");
    sandbox.redrive("run tasks.jsonl").expect(3);
    let refused =
        sandbox.dead().into_iter().any(|letter| letter["message"].to_string().contains("would change the host"));
    assert!(refused);
}
