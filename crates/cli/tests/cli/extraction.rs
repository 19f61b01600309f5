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
