//! What speaks against starting a replay: a try that is under way, rules that are not in force, workers that run other rules than
//! those, or none that is alive.

use maud::{Markup, html};
use redrive::contract::WorkerView;
use redrive_core::definitions::DefinitionVersion;
use redrive_core::ids::PipelineName;
use redrive_core::replays::ReplayPlan;

use crate::app::App;
use crate::pages::fields::Fields;
use crate::pages::problem::Problem;
use crate::pages::replay_try::{Newest, draft, elsewhere};

/// Something that speaks against starting a replay.
pub struct Obstacle {
    /// What, in words.
    pub why: String,
    /// Whether nothing can be started while it is there.
    pub forbids: bool,
    /// The field by which somebody says that it is meant all the same.
    meant_by: Option<&'static str>,
}

impl Obstacle {
    const fn forbidding(why: String) -> Self {
        Self { why, forbids: true, meant_by: None }
    }

    const fn warning(why: String) -> Self {
        Self { why, forbids: false, meant_by: None }
    }

    /// Whether it keeps what a form asks for from being done.
    pub fn stops(&self, fields: &Fields) -> bool {
        self.forbids || self.meant_by.is_some_and(|field| fields.one(field) != Some("yes"))
    }

    /// It on the page, with a box where it can be meant all the same.
    pub fn shown(&self, fields: &Fields) -> Markup {
        html! {
            @match self.meant_by {
                None => { p.warn-text { (self.why) } }
                Some(field) => {
                    label.choice {
                        input type="checkbox" name=(field) value="yes" required checked[fields.one(field) == Some("yes")];
                        span { "Start all the same" span.fact.warn-text { (self.why) } }
                    }
                }
            }
        }
    }
}

/// What speaks against a replay of these letters now.
pub async fn find(
    app: &App,
    fields: &Fields,
    plan: &ReplayPlan,
    newest: Option<&Newest>,
) -> Result<Vec<Obstacle>, Problem> {
    let (redrive, mut all) = (app.redrive(), Vec::new());
    all.extend(newest.and_then(of_try));
    // One that cannot be read is no less one.
    let is_draft = !matches!(draft::asked(app, fields, plan.pipelines.keys()), Ok(None));
    if is_draft && !all.iter().any(|obstacle| obstacle.forbids) {
        let why = "A draft is filled in, and a replay goes by the rules of redrive.toml. Try the draft and change the file as it shows, or put the file's rule back.";
        all.push(Obstacle::forbidding(why.to_owned()));
    }
    let workers = redrive.store().list_workers().await?;
    let now = redrive.now();
    let at_work: Vec<&WorkerView> = workers.iter().filter(|worker| worker.is_at_work(now)).collect();
    let elsewhere = elsewhere(app, plan.pipelines.keys());
    for name in plan.pipelines.keys() {
        let own = at_work.iter().flat_map(|worker| &worker.runs).filter(|runs| runs.pipeline == *name);
        let versions: Vec<_> = own.map(|runs| runs.definition.as_ref()).collect();
        let pinned = app.pipeline(name).ok().and_then(|pipeline| pipeline.definition().cloned());
        all.extend(of_workers(name, &versions, pinned.as_ref().filter(|_| !elsewhere.contains(name))));
    }
    Ok(all)
}

fn of_try(newest: &Newest) -> Option<Obstacle> {
    if newest.is_under_way() {
        let why = "A try of these letters is under way: wait for it, or stop it.";
        return Some(Obstacle::forbidding(why.to_owned()));
    }
    if !newest.is_outdated {
        return None;
    }
    Some(match newest.is_draft() {
        true => Obstacle::forbidding(
            "What was tried is a draft: change redrive.toml as shown above, then start. Load this page again when it is changed."
                .to_owned(),
        ),
        // What would run is not what was tried: somebody has to mean that.
        false => Obstacle {
            why: "redrive.toml has changed since this try, or it is too old: what passed then need not pass now. Try again to start with those that pass."
                .to_owned(),
            forbids: false,
            meant_by: Some("untried"),
        },
    })
}

/// What workers of a pipeline have against it: nobody is there, or none runs what letters would be sent for.
fn of_workers(
    name: &PipelineName,
    versions: &[Option<&DefinitionVersion>],
    pinned: Option<&DefinitionVersion>,
) -> Option<Obstacle> {
    if versions.is_empty() {
        let why = format!("No worker is alive for {name}: the replay waits until one is. Start redrive work.");
        return Some(Obstacle { why, forbids: false, meant_by: pinned.is_some().then_some("unattended") });
    }
    let pinned = pinned?;
    let runs_it = |version: &&Option<&DefinitionVersion>| version.is_none_or(|version| version == pinned);
    let (able, all) = (versions.iter().filter(runs_it).count(), versions.len());
    match able {
        0 => Some(Obstacle::forbidding(format!(
            "{} of {name} {} other rules than redrive.toml has: nobody would take these letters. Let them read it again, or start them anew.",
            if all == 1 { "The only worker".to_owned() } else { format!("All {all} workers") },
            if all == 1 { "runs" } else { "run" },
        ))),
        _ if able < all => {
            let why = format!(
                "{able} of {all} workers of {name} run the rules of redrive.toml; the others take none of these letters."
            );
            Some(Obstacle::warning(why))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_must_run_the_rules_that_letters_are_sent_for() {
        let name: PipelineName = "shop".parse().expect("a name");
        let [old, new] = ["v7", "v8"].map(DefinitionVersion::new);
        let of = |versions: &[Option<&DefinitionVersion>]| of_workers(&name, versions, Some(&new));
        let fields = |text: &str| Fields::read(text.as_bytes());
        let nobody = of(&[]).expect("an obstacle");
        assert!(nobody.stops(&fields("")) && !nobody.stops(&fields("unattended=yes")) && !nobody.forbids);
        let others = of(&[Some(&old), Some(&old)]).expect("an obstacle");
        assert!(others.forbids && others.stops(&fields("unattended=yes")), "{}", others.why);
        let some = of(&[Some(&old), Some(&new)]).expect("a hint");
        assert!(!some.stops(&fields("")) && some.why.starts_with("1 of 2"), "{}", some.why);
        assert!(of(&[Some(&new)]).is_none() && of(&[None]).is_none(), "whoever says nothing may have them");
        let elsewhere = of_workers(&name, &[], None).expect("a hint");
        assert!(!elsewhere.stops(&fields("")), "who reported letters may come for them when they are sent");
        assert!(of_workers(&name, &[Some(&old)], None).is_none());
    }
}
