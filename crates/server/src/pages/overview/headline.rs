//! The headline: what died lately and of what, who waits, what rests; or that all is well.

use maud::{Markup, html};
use redrive::overview::{Lately, Look, MainCause, Need, PipelineLine};
use redrive_core::breakers::BreakerView;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::Standing;
use redrive_core::time::Timestamp;

use super::about;
use crate::look::figures::{count, part_of, percent};
use crate::look::tone::Tone;
use crate::pages::parts::{clock, instant, name, text};
use crate::pages::problem::Problem;
use crate::pages::shell::{number_of, number_or_more};

/// Pipelines that are named with their numbers, besides the worst.
const NAMED: usize = 3;

/// Draws the headline, of one pipeline or of all.
pub async fn headline<C>(look: &Look<'_, C>, pipeline: Option<&PipelineName>) -> Result<Markup, Problem>
where
    C: Fn(&PipelineName) -> bool,
{
    let (Lately { died: lately, recovered, worst }, lines) = (look.lately().await?, look.pipelines().await?);
    // What needs somebody says itself where it cannot be read; that all else is well is not said then.
    let needs = look.needs().await.ok();
    let alerts = needs.map_or(0, |all| all.needs.iter().filter(|need| matches!(need, Need::Alert(_))).count());
    let more_causes = needs.is_some_and(|all| all.more_causes);
    let causes = needs
        .map_or(0, |all| all.other_causes + all.needs.iter().filter(|need| matches!(need, Need::Cause(_))).count());
    let of_worst = |line: &&PipelineLine| worst.as_ref().is_some_and(|worst| worst.pipeline == line.name);
    let standing = |is: Standing| lines.iter().filter(move |line| line.standing == is);
    let waiting: Vec<&PipelineLine> = standing(Standing::Held).collect();
    let paused: Vec<&PipelineLine> = lines.iter().filter(|line| line.pause.is_some()).collect();
    let failing: Vec<&PipelineLine> = standing(Standing::Failing).filter(|line| !of_worst(line)).collect();
    let unattended: Vec<&PipelineLine> = standing(Standing::Unattended).filter(|line| !of_worst(line)).collect();
    let alerting: Vec<&PipelineLine> = standing(Standing::Alerting).filter(|line| !of_worst(line)).collect();
    // Of all that is not normal something was said.
    let has_rest = standing(Standing::Normal).any(|line| !of_worst(&line));
    // That nothing died lately is no good news while something fires, rests, waits or needs somebody.
    let is_quiet = worst.is_none()
        && [&waiting, &paused, &failing, &unattended, &alerting].iter().all(|lines| lines.is_empty())
        && needs.is_some_and(|all| all.needs.is_empty());
    let tone = match &worst {
        Some(worst) => Tone::of_dlq_rate(worst.died.value()),
        None if is_quiet => Tone::Good,
        None => Tone::Warn,
    };
    let dead = lines.iter().find(|line| of_worst(line)).map_or(0, |line| line.ledger.dead);
    let [died, ended] = [lately.part, lately.whole].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    let held = look.held().await?;
    Ok(html! {
        p #headline class={ "headline " (tone.class()) } {
            @match &worst {
                Some(worst) => {
                    b {
                        (worst.pipeline) ": " (count(worst.died.part as i64)) " of " (count(worst.died.whole as i64))
                        " tasks died in 10 min (" (percent(worst.died.value())) ")"
                    }
                    @if worst.recovered > 0 {
                        "; " (count(worst.recovered as i64)) " recovered, " (count(dead)) " dead now"
                    }
                    "."
                    @if let Some(main) = &worst.cause { (main_cause(main, look.now)) }
                    @if died > worst.died.part as i64 { " Over all pipelines " (count(died)) " of " (count(ended)) " in 10 min." }
                }
                None if ended > 0 => { "No task died in 10 min; " (count(ended)) " done." }
                None if recovered > 0 => {}
                None => { "No task came to its end in 10 min." }
            }
            @if worst.is_none() && recovered > 0 {
                " " (number_of(usize::try_from(recovered).unwrap_or(usize::MAX), "letter", "letters")) " recovered in 10 min."
            }
            @for line in failing.iter().take(NAMED) {
                " " (line.name) ": " (count(line.died.part as i64)) " of " (count(line.died.whole as i64)) " tasks died in 1 h."
            }
            @if failing.len() > NAMED { " " (number_of(failing.len() - NAMED, "more pipeline is", "more pipelines are")) " failing." }
            @if !unattended.is_empty() {
                " "
                @for (at, line) in unattended.iter().enumerate() { @if at > 0 { ", " } (line.name) }
                @if unattended.len() == 1 { " has no worker." } @else { " have no worker." }
            }
            @if !waiting.is_empty() {
                " "
                @for (at, line) in waiting.iter().enumerate() { @if at > 0 { ", " } (line.name) }
                @if waiting.len() == 1 { " waits for " } @else { " wait for " }
                (targets(held, &waiting))
                "."
            }
            @if !alerting.is_empty() {
                " "
                @for (at, line) in alerting.iter().enumerate() { @if at > 0 { ", " } (line.name) }
                @if alerting.len() == 1 { " has " } @else { " have " }
                a href="/alerts" { "alerts that fire" } "."
            } @else if worst.is_none() && alerts > 0 {
                " " a href="/alerts" { (number_of(alerts, "alert fires", "alerts fire")) } "."
            }
            @if worst.is_none() && causes > 0 {
                " " a href=(about("/causes", pipeline)) { (number_or_more(causes, more_causes, "cause needs", "causes need")) } " somebody."
            }
            @if !paused.is_empty() {
                " "
                @for (at, line) in paused.iter().enumerate() { @if at > 0 { ", " } (line.name) }
                @if paused.len() == 1 { " is paused." } @else { " are paused." }
            }
            @if is_quiet && !lines.is_empty() { " Nothing waits." }
            @else if needs.is_some() && has_rest {
                " The rest is normal."
            }
        }
    })
}

/// The main cause, with its deaths among all of one window: since its first, or since the beginning of an hour.
fn main_cause(main: &MainCause, now: Timestamp) -> Markup {
    let MainCause { cause, died, since } = main;
    let title = html! { a href={ "/causes/" (cause.id) } { (text(&cause.title)) } };
    let (since, died) = (clock(*since), part_of(died.part as i64, died.whole as i64));
    let since = since.get(..5).unwrap_or_default();
    html! {
        @if main.is_whole() { " Main cause since " (since) ": " (title) ", " (died) " that died." }
        @else {
            " Main cause: " (title) ", first death " (instant(cause.first_seen, now)) ". "
            (died) " tasks that died since " (since) " died of it."
        }
    }
}

/// What the pipelines that wait wait for.
fn targets(held: &[BreakerView], waiting: &[&PipelineLine]) -> Markup {
    let held = held.iter().filter(|view| waiting.iter().any(|line| line.name == view.pipeline));
    let targets: Vec<&str> = held.map(|view| view.target.as_str()).collect();
    html! {
        @if targets.is_empty() { "what their workers need" }
        @for (at, target) in targets.iter().take(3).enumerate() { @if at > 0 { ", " } (name(target)) }
        @if targets.len() > 3 { " and " (targets.len() - 3) " more" }
    }
}
