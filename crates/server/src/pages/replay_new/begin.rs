//! The last step: which of the letters, from what, at what pace; and what a form asks of the API.

use maud::{Markup, html};
use redrive_core::replays::{Pacing, ReplayPlan};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use super::Looked;
use super::plans::{Plans, Way};
use crate::error::ApiError;
use crate::look::figures::{count, percent};
use crate::pages::acts::letters;
use crate::pages::fields::Fields;
use crate::pages::filter::LetterFilter;
use crate::pages::parts::{command_of_form, quoted};
use crate::pages::problem::Problem;
use crate::pages::replay_try::Newest;
use crate::pages::shell::number_of;
use crate::pages::visitor::Visitor;

/// What is wrong with a field of a form: its name, and why.
pub type Mistake<'a> = Option<(&'a str, &'a str)>;

/// So many letters.
pub fn letters_of(many: u64) -> String {
    number_of(usize::try_from(many).unwrap_or(usize::MAX), "letter", "letters")
}

/// The step of the page.
pub fn step(visitor: &Visitor, fields: &Fields, looked: &Looked, (mistake, now): (Mistake<'_>, Timestamp)) -> Markup {
    let Looked { plans, newest, obstacles, requests, .. } = looked;
    let plan = plans.base();
    let (is_vain, passed) = (is_vain(newest.as_ref()), passed(looked));
    let forbids = obstacles.iter().find(|obstacle| obstacle.forbids);
    let lacks = visitor.lacks(Role::Operator);
    let why_not = lacks.as_deref().or(forbids.map(|obstacle| obstacle.why.as_str()));
    let given = |name: &str, usual: &str| fields.all(name).next().unwrap_or(usual).to_owned();
    html! {
        section.step aria-labelledby="step-3" {
            div.step-name { h2 id="step-3" { b { "3" } "Start" } p.fact { "In growing steps; it stops by itself" } }
            div.entries {
                (entry(("name", "Name"), &given("name", ""), "--name", mistake))
                @if let Some((good, all, then)) = passed { (which(good, then, (plan.included, all))) }
                (from(fields, plans))
                @if let Some(requests) = requests { @if plan.anew > 0 { (requests.shown(plan.anew, plan.included)) } }
                (pace(fields, mistake))
                (by_force(fields, plans, mistake))
                @for obstacle in obstacles { (obstacle.shown(fields)) }
                @if is_vain {
                    label.choice {
                        input type="checkbox" name="anyway" value="yes" required;
                        span {
                            "Send " (letters_of(plan.included)) " though none passed the try"
                            span.fact { "None of those that were tried would recover by these rules." }
                        }
                    }
                }
                p.actions.page-actions {
                    button.primary[!is_vain] disabled[why_not.is_some() || plan.included == 0] title=[why_not] {
                        (numbers(plans, passed.map(|(good, ..)| good)))
                    }
                    @if let Some(lacks) = &lacks { span.fact { (lacks) } }
                    @if plan.included == 0 { span.fact { "No letter can be sent." } }
                }
                (command_of_form(visitor, &line(fields, now), if passed.is_some() { " --recoverable" } else { "" }))
            }
        }
    }
}

/// How many of those that passed the try could go now, how many it tried, and how many passed then; none where that is no choice.
pub fn passed(looked: &Looked) -> Option<(u64, u64, u64)> {
    let (then, all) = looked.newest.as_ref().and_then(Newest::recovered)?;
    let (then, all) = (then.unsigned_abs(), all.unsigned_abs());
    let now = looked.plans.get(Way::Passed).map_or(then.min(looked.plans.base().included), |plan| plan.included);
    (then < all && now > 0).then_some((now, all, then))
}

fn which(good: u64, then: u64, (included, all): (u64, u64)) -> Markup {
    html! {
        fieldset.entry {
            legend { "Which" }
            label.choice {
                input type="radio" name="only" value="passed" checked data-flag="--recoverable" data-bare="";
                span {
                    "Only the " (count(good as i64)) " that passed the try, from their saved pages"
                    @if good < then { span.fact { (count(then as i64)) " passed; the others are no longer dead, or another replay has them" } }
                }
            }
            label.choice {
                input type="radio" name="only" value="";
                span { "All " (count(included as i64)) span.fact { (count(all.saturating_sub(then) as i64)) " would fail again" } }
            }
        }
    }
}

fn from(fields: &Fields, plans: &Plans) -> Markup {
    let (plan, from) = (plans.base(), fields.one("from").unwrap_or("suited").to_owned());
    let saved = match (&plans.unusable, plans.get(Way::Saved)) {
        (Some(why), _) => why.clone(),
        (None, None) => "no request is sent; those without a page are left out".to_owned(),
        (None, Some(saved)) => match plan.included.saturating_sub(saved.included) {
            0 => format!("{}; no request is sent", letters_of(saved.included)),
            without => format!("{}; {} without a page left out", letters_of(saved.included), count(without as i64)),
        },
    };
    let can_save = plans.unusable.is_none() && plans.get(Way::Saved).is_none_or(|saved| saved.included > 0);
    let suited = format!("{} from saved pages, {} anew", count(plan.saved as i64), count(plan.anew as i64));
    let tasks = usize::try_from(plan.included).unwrap_or(usize::MAX);
    let anew = number_of(tasks, "task asks its target again", "tasks ask their targets again");
    html! {
        fieldset.entry {
            legend { "From" }
            @for (value, label, fact, is_possible) in [
                ("suited", "What suits each", suited, true),
                ("saved", "All from saved pages", saved, can_save),
                ("refetch", "All anew", anew, true),
            ] {
                label.choice {
                    input type="radio" name="from" value=(value) checked[from == value] disabled[!is_possible] data-flag={ "--" (value) } data-bare=[(value != "suited").then_some("")];
                    span { (label) span.fact { (fact) } }
                }
            }
        }
    }
}

fn pace(fields: &Fields, mistake: Mistake<'_>) -> Markup {
    let usual = Pacing::default();
    let ramp = usual.ramp.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let given = |name: &str, usual: &str| fields.all(name).next().unwrap_or(usual).to_owned();
    html! {
        div.row-of {
            (entry(("ramp", "Steps, before all the rest; none for all at once"), &given("ramp", &ramp), "--ramp", mistake))
            (entry(("refail_max", "Pause above this share of failures, and two"), &given("refail_max", &percent(usual.refail_max)), "--refail-max", mistake))
            (entry(("rate", "At most: 20/s, 100/m; empty means no limit"), &given("rate", ""), "--rate", mistake))
        }
    }
}

/// Letters that failed permanently go with a reason: those besides the others, or all of them.
fn by_force(fields: &Fields, plans: &Plans, mistake: Mistake<'_>) -> Markup {
    let besides = plans.forced(Way::Suited).map(|forced| forced.included.saturating_sub(plans.base().included));
    let label = match (plans.only_by_force, besides.unwrap_or(plans.never)) {
        // What lacks a field is not sent by force either.
        (true, _) if plans.base().included == 0 => return html! {},
        (true, _) => "They failed permanently; they are sent all the same, because".to_owned(),
        (false, 0) => return html! {},
        (false, more) => format!("Also send {} that failed permanently, because", letters_of(more)),
    };
    html! {
        p.entry {
            label for="why" { (label) }
            // What is filled in here is seen by the button, which says how many letters go then.
            input.forces[!plans.only_by_force] id="why" type="text" name="why" value=(fields.one("why").unwrap_or_default()) placeholder=" " required[plans.only_by_force] data-flag="--force --why";
            (said(("why", mistake)))
        }
    }
}

/// A field of text, with what is wrong with it.
fn entry((id, label): (&str, &str), value: &str, flag: &str, mistake: Mistake<'_>) -> Markup {
    let is_wrong = mistake.is_some_and(|(field, _)| field == id);
    html! {
        p.entry {
            label for=(id) { (label) }
            input id=(id) type="text" name=(id) value=(value) data-flag=(flag) aria-invalid=[is_wrong.then_some("true")];
            (said((id, mistake)))
        }
    }
}

/// What is wrong with a field, beside it.
pub fn said((id, mistake): (&str, Mistake<'_>)) -> Markup {
    html! {
        @if let Some((_, why)) = mistake.filter(|(field, _)| *field == id) { span.fact.bad-text role="alert" { bdi { (why) } } }
    }
}

/// What the button says: how many go as the form is filled in. Styles show the one that holds, also where no scripts run.
fn numbers(plans: &Plans, passed: Option<u64>) -> Markup {
    let known = |plan: Option<&ReplayPlan>| plan.map(|plan| letters_of(plan.included));
    let with_page = || Some("those with a saved page".to_owned());
    let has_more = plans.never > 0 && !plans.only_by_force;
    let most = || Some(format!("up to {}", letters_of(plans.base().included + plans.never)));
    let all = [
        ("of", known(plans.get(Way::Suited))),
        ("of s", known(plans.get(Way::Saved)).or_else(with_page)),
        ("of f", known(plans.forced(Way::Suited)).or_else(most).filter(|_| has_more)),
        ("of s f", known(plans.forced(Way::Saved)).or_else(with_page).filter(|_| has_more)),
        ("of p", passed.map(letters_of)),
    ];
    html! { @for (class, letters) in all { @if let Some(letters) = letters { span class=(class) { "Replay " (letters) } } } }
}

/// Whether a try says that nothing would recover: what is sent all the same has to be meant.
pub fn is_vain(newest: Option<&Newest>) -> bool {
    newest.and_then(Newest::recovered).is_some_and(|(good, _)| good == 0)
}

/// What somebody would type to start the same.
fn line(fields: &Fields, now: Timestamp) -> String {
    let ids: String = fields.all("id").map(|id| format!(" {}", quoted(id))).collect();
    let filter = LetterFilter::of(fields);
    // The same letters: not those that die from now on.
    let flags = if ids.is_empty() { filter.frozen(now).unwrap_or(filter).flags() } else { String::new() };
    format!("redrive replay start{ids}{flags} --detach")
}

/// What is asked of the API.
pub fn wanted(fields: &Fields) -> Result<Value, Problem> {
    let mut wanted = json!({ "letters": letters(fields)? });
    for name in ["name", "from", "rate"] {
        if let Some(value) = fields.one(name) {
            wanted[name] = value.into();
        }
    }
    if let Some(share) = fields.one("refail_max") {
        wanted["refail_max"] = share.replace(' ', "").into();
    }
    if let Some(ramp) = fields.all("ramp").next() {
        wanted["ramp"] = steps(ramp.trim())?.into();
    }
    if let Some(why) = fields.one("why") {
        wanted["force"] = true.into();
        wanted["why"] = why.into();
    }
    Ok(wanted)
}

/// The steps of a ramp as they were written; `none` has all go at once, and nothing is no answer.
fn steps(ramp: &str) -> Result<Vec<u32>, Problem> {
    let wrong = || Problem::from(ApiError::invalid("ramp", "expected numbers of letters, as in 1, 5, 20, or none"));
    if ramp == "none" {
        return Ok(Vec::new());
    }
    let steps = ramp.split([',', ' ']).filter(|step| !step.is_empty());
    let steps = steps.map(|step| step.parse::<u32>().map_err(|_| wrong())).collect::<Result<Vec<_>, _>>()?;
    if steps.is_empty() { Err(wrong()) } else { Ok(steps) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbers_or_none() {
        assert_eq!(steps("1, 5 20").expect("steps"), [1, 5, 20]);
        assert_eq!(steps("none").expect("no steps"), Vec::<u32>::new());
        assert!(steps("").is_err() && steps("a").is_err() && steps("1,-2").is_err());
        let asked = |text: &str| wanted(&Fields::read(text.as_bytes())).map(|wanted| wanted["ramp"].clone());
        assert_eq!(asked("reason=dns").expect("asked"), Value::Null, "who says nothing has the usual ones");
        assert!(asked("ramp=").is_err(), "an empty field is no answer");
    }
}
