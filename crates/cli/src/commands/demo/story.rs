//! The files that the demo leaves behind: a configuration with two pipelines, and their tasks.

use std::io;
use std::path::Path;

use serde_json::json;

use super::site::{API_KEY, HUGE_PATH, Site, catalogue, puzzles};

/// The configuration. `SITE` stands for the site's address, `KEY` for the solver's.
const CONFIG: &str = include_str!("redrive.toml");

/// The rule that breaks when the layout changes, and the one that reads the new layout.
pub const RULES: (&str, &str) = (
    r#"price = { select = ".price-tag-main::text", type = "number" }"#,
    r#"price = { select = ".price data::attr(value)", type = "number" }"#,
);

/// Corrects the rule in the configuration of the current folder; gives the old line and the new one.
pub fn correct() -> io::Result<(&'static str, &'static str)> {
    let (old, new) = RULES;
    let config = std::fs::read_to_string("redrive.toml")?;
    std::fs::write("redrive.toml", config.replace(old, new))?;
    Ok((old, new))
}

pub fn write(folder: &Path, site: &Site) -> io::Result<()> {
    let config = CONFIG.replace("SITE", &site.address().to_string());
    std::fs::write(folder.join("redrive.toml"), config)?;
    std::fs::write(folder.join("solver.key"), API_KEY)?;
    std::fs::write(folder.join("products.jsonl"), products(site))?;
    std::fs::write(folder.join("puzzles.jsonl"), solver_tasks(site))
}

fn products(site: &Site) -> String {
    let mut tasks = String::new();
    for product in catalogue() {
        let mut task = json!({"product": product.number, "url": site.url(&product.path)});
        if product.behaviour.is_closed_door() {
            // A door of its own: else the whole shop would wait behind it.
            task["target"] = "closed.shop".into();
        }
        tasks += &format!("{task}\n");
    }
    tasks + &format!("{}\n", json!({"product": 0, "url": site.url(HUGE_PATH), "note": "a body without end"}))
}

fn solver_tasks(site: &Site) -> String {
    let task = |sitekey: &str, path: &str| format!("{}\n", json!({"googlekey": sitekey, "pageurl": site.url(path)}));
    puzzles().iter().map(|puzzle| task(puzzle.sitekey, puzzle.path)).collect()
}
