//! Grouping accuracy on labelled failures, and how fast failures are recognised.
//!
//! Each `*.jsonl` file of the folder is a sample, each line a failure with its `label`. A failure is right when the set it
//! is grouped with is exactly the set that shares its label.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use redrive_core::fingerprint::{Subject, fingerprint};
use serde::Deserialize;

/// Messages per second and core that are asked for.
const LIMIT: f64 = 500_000.0;

/// How long the speed is measured.
const MEASURED: Duration = Duration::from_secs(3);

#[derive(Deserialize)]
struct Labelled {
    message: String,
    label: serde_json::Value,
    error_type: Option<String>,
    stack: Option<String>,
    http_status: Option<u16>,
}

impl Labelled {
    fn subject(&self) -> Subject<'_> {
        Subject {
            message: &self.message,
            error_type: self.error_type.as_deref(),
            stack: self.stack.as_deref(),
            http_status: self.http_status,
            ..Subject::default()
        }
    }
}

pub fn measure(folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    files.sort();
    println!("| sample | failures | causes | groups | accuracy |");
    println!("|---|--:|--:|--:|--:|");
    let mut means: HashMap<PathBuf, Vec<f64>> = HashMap::new();
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let read = |line: &str| serde_json::from_str(line).with_context(|| format!("in {}", file.display()));
        let sample: Vec<Labelled> = text.lines().map(read).collect::<Result<_>>()?;
        let keys: Vec<String> = sample.iter().map(|failure| fingerprint(&failure.subject()).key).collect();
        let labels: Vec<String> = sample.iter().map(|failure| failure.label.to_string()).collect();
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let accuracy = accuracy(&labels, &keys);
        println!("| {name} | {} | {} | {} | {accuracy:.4} |", sample.len(), groups(&labels), groups(&keys));
        means.entry(file.parent().unwrap_or(folder).to_owned()).or_default().push(accuracy);
        all.extend(sample);
    }
    for (folder, accuracies) in &means {
        let mean = accuracies.iter().sum::<f64>() / accuracies.len() as f64;
        println!("| **mean of {}** | | | | **{mean:.4}** |", folder.file_name().unwrap_or_default().to_string_lossy());
    }
    speed(&all);
    Ok(())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

fn groups(names: &[String]) -> usize {
    names.iter().collect::<std::collections::HashSet<_>>().len()
}

/// The share of failures whose group is exactly the set with their label.
fn accuracy(labels: &[String], keys: &[String]) -> f64 {
    let count = |names: &[String]| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        names.iter().for_each(|name| *counts.entry(name.clone()).or_default() += 1);
        counts
    };
    let both: Vec<String> = labels.iter().zip(keys).map(|(label, key)| format!("{label}\u{0}{key}")).collect();
    let (by_label, by_key, by_both) = (count(labels), count(keys), count(&both));
    let right = labels.iter().zip(keys).zip(&both);
    let right =
        right.filter(|((label, key), both)| by_label[*label] == by_both[*both] && by_key[*key] == by_both[*both]);
    right.count() as f64 / labels.len().max(1) as f64
}

fn speed(failures: &[Labelled]) {
    let (begun, mut read) = (Instant::now(), 0_u64);
    while begun.elapsed() < MEASURED {
        for failure in failures {
            std::hint::black_box(fingerprint(&failure.subject()));
        }
        read += failures.len() as u64;
    }
    let rate = read as f64 / begun.elapsed().as_secs_f64();
    println!();
    println!("| what | per second | wanted | share |");
    println!("|---|--:|--:|--:|");
    println!("| failures recognised, one core | {rate:.0} | {LIMIT:.0} | {:.2} |", rate / LIMIT);
}
