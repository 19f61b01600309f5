//! The headline: what died lately and of what, who waits, what rests; or that all is well.

use maud::{Markup, html};
use redrive::overview::{Need, Overview, PipelineLine};
use redrive_core::pipelines::Standing;

use crate::look::figures::{count, percent};
use crate::look::tone::Tone;
use crate::pages::parts::{name, text};
use crate::pages::shell::number_of;

/// Draws the headline.
pub fn headline(overview: &Overview) -> Markup {
    let waiting = overview.pipelines.iter().filter(|line| line.standing == Standing::Held);
    let waiting: Vec<&PipelineLine> = waiting.collect();
    let paused: Vec<&PipelineLine> = overview.pipelines.iter().filter(|line| line.pause.is_some()).collect();
    let alerts = overview.needs.iter().filter(|need| matches!(need, Need::Alert(_))).count();
    // That nothing died lately is no good news while something fires, rests or waits.
    let is_quiet = overview.worst.is_none() && waiting.is_empty() && paused.is_empty() && alerts == 0;
    let tone = match &overview.worst {
        Some(worst) => Tone::of_dlq_rate(worst.died.value()),
        None if is_quiet => Tone::Good,
        None => Tone::Warn,
    };
    let of_worst = |line: &&PipelineLine| overview.worst.as_ref().is_some_and(|worst| worst.pipeline == line.name);
    let dead = overview.pipelines.iter().find(of_worst).map_or(0, |line| line.ledger.dead);
    let [died, ended] = [overview.lately.part, overview.lately.whole].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    html! {
        p #headline class={ "headline " (tone.class()) } {
            @match &overview.worst {
                Some(worst) => {
                    b {
                        (worst.pipeline) ": " (count(worst.died.part as i64)) " of " (count(worst.died.whole as i64))
                        " tasks died in 10 min (" (percent(worst.died.value())) ")"
                    }
                    @if let Some((cause, in_hour)) = &worst.cause {
                        ", "
                        (count(*in_hour))
                        " this hour for one cause: "
                        a href={ "/causes/" (cause.id) } { (text(&cause.title)) }
                    }
                    @if worst.recovered > 0 {
                        "; " (count(worst.recovered as i64)) " recovered, " (count(dead)) " dead now"
                    }
                    "."
                    @if died > worst.died.part as i64 { " Over all pipelines " (count(died)) " of " (count(ended)) "." }
                }
                None if ended > 0 => { "No task died in 10 min; " (count(ended)) " done." }
                None => { "No task came to its end in 10 min." }
            }
            @if !waiting.is_empty() {
                " "
                @for (at, line) in waiting.iter().enumerate() { @if at > 0 { ", " } (line.name) }
                " waits for "
                (targets(overview, &waiting))
                "."
            }
            @if overview.worst.is_none() && alerts > 0 {
                " " a href="/alerts" { (number_of(alerts, "alert fires", "alerts fire")) } "."
            }
            @if !paused.is_empty() {
                " "
                @for (at, line) in paused.iter().enumerate() { @if at > 0 { ", " } (line.name) }
                @if paused.len() == 1 { " is paused." } @else { " are paused." }
            }
            @if is_quiet && !overview.pipelines.is_empty() { " Nothing waits." }
            @else if overview.pipelines.iter().filter(|line| line.standing == Standing::Normal).count() > 0 {
                " The rest is normal."
            }
        }
    }
}

/// What the pipelines that wait wait for.
fn targets(overview: &Overview, waiting: &[&PipelineLine]) -> Markup {
    let held = overview.held.iter().filter(|view| waiting.iter().any(|line| line.name == view.pipeline));
    let targets: Vec<&str> = held.map(|view| view.target.as_str()).collect();
    html! {
        @if targets.is_empty() { "what its worker needs" }
        @for (at, target) in targets.iter().take(3).enumerate() { @if at > 0 { ", " } (name(target)) }
        @if targets.len() > 3 { " and " (targets.len() - 3) " more" }
    }
}
