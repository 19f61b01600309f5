//! `redrive replay plan`: what would be replayed, what not and why.

use anyhow::Result;
use redrive::config::KeptFor;
use redrive::replays;
use redrive_client::Desk;
use redrive_core::jobs::Input;
use redrive_core::replays::{ReplayMode, ReplayPlan};
use serde_json::json;

use super::select;
use crate::args::{PlanArgs, ReplayWorkArgs};
use crate::exit::Exit;
use crate::output::json;
use crate::output::paint::{DIM, HEADING, paint};
use crate::output::print::{out, say};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: PlanArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let chosen = select::selection(&redrive, args.select).await?;
    let force = chosen.force_why.is_some();
    let ids = chosen.selection.ids.clone();
    let rough = select::rough_plan(&redrive, &chosen, &Input::new()).await?;
    let none = ReplayWorkArgs::default();
    let names = (rough.pipelines.keys().cloned(), KeptFor::Letters(&chosen.selection));
    // A plan says what it can also where no handler is known; and a server knows its own.
    let pipelines = select::pipelines(setting, &redrive, names, &none, None).await.unwrap_or_default();
    let wish = replays::wish(&pipelines, args.mode.wanted(), force, &Input::new())?;
    let is_for_server = pipelines.is_empty() && matches!(redrive, Desk::There(_));
    let (plan, mode) = match is_for_server || rough.depends_on_payloads(&wish) {
        true => redrive.plan_replay(&chosen.selection, (args.mode.wanted(), force), &pipelines).await?,
        false => (rough, wish.mode),
    };
    if let Some(not_dead) = redrive.find_not_dead(&ids).await? {
        say!("{not_dead}");
        if plan.matched == 0 {
            return Ok(Exit::Failed);
        }
    }
    if args.json {
        let mut document = serde_json::to_value(&plan)?;
        document["mode"] = json!(mode);
        json::document(&document)?;
    } else {
        print(&plan, mode)?;
        out!(
            "{}",
            paint(DIM, "nothing has happened: `replay try` with the same choice tries it out, `replay start` does it")
        )?;
    }
    Ok(Exit::Ok)
}

/// Prints a plan.
pub fn print(plan: &ReplayPlan, mode: ReplayMode) -> Result<()> {
    let how = if plan.included == 0 { String::new() } else { format!(": {}", from_what(plan, mode)) };
    out!("{} of {} letters would be replayed{how}", paint(HEADING, plan.included), plan.matched)?;
    for (pipeline, letters) in &plan.pipelines {
        out!("  {letters:>8}  {pipeline}")?;
    }
    for (gate, letters) in &plan.gates {
        out!("  {letters:>8}  gate {gate}")?;
    }
    if !plan.excluded.is_empty() {
        out!("{} left out", plan.matched - plan.included)?;
    }
    for (exclusion, letters) in &plan.excluded {
        out!("  {letters:>8}  {}", select::meaning(*exclusion))?;
    }
    Ok(())
}

/// From what letters are worked on, in words.
pub fn from_what(plan: &ReplayPlan, mode: ReplayMode) -> String {
    let (saved, anew) = (plan.saved, plan.anew);
    let requests = if anew == 1 { "1 request".to_owned() } else { format!("{anew} requests") };
    match (saved, anew, mode) {
        (_, 0, _) => "from their saved payloads".to_owned(),
        (0, _, ReplayMode::Refetch) => format!("everything anew ({requests})"),
        (0, ..) => format!("anew ({requests})"),
        _ => format!("{saved} saved, {anew} anew ({requests})"),
    }
}
