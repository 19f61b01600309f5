//! The built-in tables: what is printed is what is documented, and what is looked up.

use serde_json::{Value, json};

use crate::docs::{blocks, document};
use crate::harness::Sandbox;

const PAGE: &str = "docs/codes.md";

/// The page shows what the command prints, letter by letter, and all that there is.
#[test]
fn the_reference_is_what_the_command_prints() {
    let sandbox = Sandbox::new();
    let mut shown = Vec::new();
    for block in blocks(&document(PAGE)) {
        let Some((command, printed)) = block.text.split_once('\n') else { continue };
        let Some(arguments) = command.strip_prefix("$ redrive ") else { continue };
        assert_eq!(sandbox.redrive(arguments).expect(0).stdout, printed, "{command}: quote it anew in {PAGE}");
        shown.push(arguments.trim_start_matches("codes").trim().to_owned());
    }
    let tables = sandbox.redrive("codes --json").expect(0).json_lines();
    let mut there: Vec<_> = tables.iter().map(|table| table["table"].as_str().expect("a name").to_owned()).collect();
    there.insert(0, String::new());
    assert_eq!(shown, there);
}

#[test]
fn a_table_is_printed_as_a_file_of_ones_own_looks() {
    let sandbox = Sandbox::new();
    let printed = sandbox.redrive("codes in-res --json").expect(0).stdout;
    sandbox.write("mine.json", &printed);
    assert_eq!(sandbox.redrive("codes mine.json --json").expect(0).stdout, printed);
    assert_eq!(sandbox.redrive("codes mine.json").expect(0).stdout, sandbox.redrive("codes in-res").expect(0).stdout);
    let mut table: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(table["ERROR_ZERO_BALANCE"], json!({"reason": "misconfigured", "hold": true, "wait_secs": 300.0}));
    table["MY_CODE"] = json!({"reason": "timeout", "disposition": "dead", "gate": "never", "spent": false});
    sandbox.write("mine.json", table.to_string());
    let listed = sandbox.redrive("codes mine.json").expect(0).stdout;
    let line = listed.lines().find(|line| line.starts_with("MY_CODE ")).expect("it is listed");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["MY_CODE", "timeout", "dead", "never", "kept"]);
}

#[test]
fn what_is_no_table_is_refused() {
    let sandbox = Sandbox::new();
    let known = "is neither a table (in-res, create-task, statuses, names, types, challenges) nor a file";
    sandbox.redrive("codes nothing").expect(2).complains(known);
    sandbox.write("wrong.json", "{\"A\": {\"reason\": \"angry\"}}");
    sandbox.redrive("codes wrong.json").expect(2).complains("the codes wrong.json: ");
}
