//! The workers of a pipeline: whether they are there, what they do, and by which version of its rules.

use maud::{Markup, html};
use redrive::contract::WorkerView;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;

use super::super::parts::{length, name, section_head, text};
use super::super::shell::number_of;

/// Draws the section; `file` is the version that the configuration has, as this server loaded it.
pub fn section(
    pipeline: &PipelineName,
    workers: &[WorkerView],
    file: Option<&DefinitionVersion>,
    now: Timestamp,
) -> Markup {
    let own: Vec<_> = workers
        .iter()
        .filter_map(|worker| Some((worker, worker.runs.iter().find(|runs| runs.pipeline == *pipeline)?)))
        .collect();
    let fact = file.map(|file| format!("the file has version {}", cut(file))).unwrap_or_default();
    html! {
        section aria-labelledby="workers" {
            (section_head("workers", "Workers", &fact))
            @if own.is_empty() { p.empty { "No worker knows this pipeline." } }
            ul.log #workers-rows data-rows="" {
                @for (worker, runs) in own {
                    li id={ "worker-" (worker.id) } {
                        span { @if worker.is_at_work(now) { "at work" } @else { "gone" } }
                        span {
                            (name(&worker.host)) " " (worker.pid) ", heard of " (length(worker.seen_at, now)) " ago, "
                            (number_of(worker.leases as usize, "task", "tasks"))
                            (rules(runs.definition.as_ref(), file))
                            @for hold in worker.holds.iter().filter(|hold| hold.pipeline == *pipeline) {
                                ", cannot work: " (text(&hold.why))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The version that a worker runs, against that of the file.
fn rules(runs: Option<&DefinitionVersion>, file: Option<&DefinitionVersion>) -> Markup {
    html! {
        @match (runs, file) {
            (Some(runs), Some(file)) if runs != file => {
                ", " span.warn-text { "runs version " code { (cut(runs)) } ", not that of the file" }
            }
            (Some(runs), _) => { ", version " code { (cut(runs)) } }
            (None, _) => {}
        }
    }
}

/// As much of a version as people compare.
fn cut(version: &DefinitionVersion) -> &str {
    version.as_str().get(..8).unwrap_or(version.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_other_rules_than_the_file_stands_out() {
        let [old, new] = ["aaaaaaaaaaaa", "bbbbbbbbbbbb"].map(DefinitionVersion::new);
        assert!(rules(Some(&old), Some(&new)).into_string().contains("not that of the file"));
        for file in [Some(&old), None] {
            let shown = rules(Some(&old), file).into_string();
            assert!(shown.contains("version <code>aaaaaaaa</code>") && !shown.contains("file"), "{shown}");
        }
        assert_eq!(rules(None, Some(&new)).into_string(), "");
    }
}
