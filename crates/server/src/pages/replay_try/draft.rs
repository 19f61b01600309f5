//! Draft rules of fields: filled in here, tried over the saved pages, shown as the change of `redrive.toml` that they are. Nothing is saved.

use std::sync::Arc;

use maud::{Markup, html};
use redrive::compare::Comparing;
use redrive::config::Setting;
use redrive::replays::{self, Draft, Drafted, GoodCheck};
use redrive_core::ids::PipelineName;

use super::Newest;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::part_of;
use crate::pages::fields::Fields;
use crate::pages::parts::{column, columns, name, text};
use crate::pages::problem::Problem;
use crate::pages::replay_new::{Mistake, said};

/// A field whose rule can be drafted: its name, its rule in the file, its type.
pub type Draftable = (String, String, String);

/// The fields whose rules can be drafted, if the letters are of one pipeline that has some.
pub fn draftable<'a>(app: &App, names: impl IntoIterator<Item = &'a PipelineName>) -> Vec<Draftable> {
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(name), None) => replays::draftable(&app.setting(), name),
        _ => Vec::new(),
    }
}

/// The rules that were filled in. One that stands there as it came from the file is none: the file may have another one by now.
pub fn given(fields: &Fields) -> Draft {
    let given = fields.kept().filter_map(|(name, rule)| Some((name.strip_prefix("draft.")?, rule.trim())));
    let is_draft = |(field, rule): &(&str, &str)| !rule.is_empty() && fields.one(&shown_as(field)) != Some(rule);
    given.filter(is_draft).map(|(field, rule)| (field.to_owned(), rule.to_owned())).collect()
}

/// The field of a form that has the rule of the file, as it was shown.
fn shown_as(field: &str) -> String {
    format!("shown.{field}")
}

/// A draft of a form.
pub struct Asked {
    /// The configuration with it, and as it is.
    pub setting: Arc<Setting>,
    before: Arc<Setting>,
    pipeline: PipelineName,
    pub drafted: Drafted,
}

impl Asked {
    /// Whether pages that worked still give the same.
    pub async fn check(&self, app: &App) -> Result<GoodCheck, redrive::Error> {
        let with = Comparing { setting: &self.before, vault: app.vault() };
        app.redrive().check_good(&with, &self.setting, &self.pipeline).await
    }
}

/// The configuration with the draft of a form, if it is one: rules that are those of the file are none.
pub fn asked<'a>(
    app: &App,
    fields: &Fields,
    names: impl IntoIterator<Item = &'a PipelineName>,
) -> Result<Option<Asked>, Problem> {
    let (given, setting) = (given(fields), app.setting());
    let Some(pipeline) = names.into_iter().next().filter(|_| !given.is_empty()) else { return Ok(None) };
    let wrong = |wrong: replays::WrongDraft| ApiError::invalid(format!("draft.{}", wrong.field), wrong.why);
    let (changed, rules, change) = replays::drafted(&setting, pipeline, &given).map_err(wrong)?;
    if rules.is_empty() {
        return Ok(None);
    }
    let drafted = Drafted { rules, change, good: GoodCheck::default() };
    Ok(Some(Asked { setting: Arc::new(changed), before: setting, pipeline: pipeline.clone(), drafted }))
}

/// The rules, to be filled in.
pub fn table(fields: &Fields, rules: &[Draftable], mistake: Mistake<'_>) -> Markup {
    html! {
        table.rules role="table" {
            (columns(&[column("Field"), column("Draft rule"), column("Type"), column("In redrive.toml")]))
            tbody role="rowgroup" {
                @for (field, rule, kind) in rules {
                    @let id = format!("draft.{field}");
                    @let drafted = fields.one(&id).unwrap_or(rule);
                    tr role="row" {
                        th role="rowheader" scope="row" { label for=(id) { (name(field)) } }
                        td role="cell" {
                            input.mono type="text" id=(id) name=(id) value=(drafted) spellcheck="false" autocomplete="off";
                            (said((&id, mistake)))
                            @if drafted == rule { input type="hidden" name=(shown_as(field)) value=(rule); }
                        }
                        td role="cell" { span.muted { (kind) } }
                        td role="cell" {
                            @if drafted == rule { span.muted { "the same" } } @else { code.cut { (text(rule)) } }
                        }
                    }
                }
            }
        }
        p.fact { "Reads the saved pages again, by these rules. Settles nothing, asks nobody, saves no draft." }
    }
}

/// Whether pages that worked still give the same by the rules that were tried, and what a draft would change in the file.
pub fn outcome(newest: &Newest) -> Markup {
    let tried = &newest.tried;
    html! { div {
        @match &tried.draft {
            None => { @if let Some(good) = &tried.good { (good_pages(good)) } }
            Some(Drafted { change, good, .. }) => {
                @if good.of > 0 { (good_pages(good)) }
                @else {
                    p.fact {
                        @if tried.stopped { "It was stopped before pages that worked were read by the draft." }
                        @else { "No page that worked is kept to check the draft against: the next success is kept." }
                    }
                }
                @if !newest.is_outdated { p.fact { "redrive.toml has this by now." } }
                @else {
                    h3 { "What to change in redrive.toml" }
                    pre.code.change {
                        @for line in change {
                            @match line.chars().next() {
                                Some('+') => ins { (text(line)) }, Some('-') => del { (text(line)) }, _ => { (text(line)) "\n" }
                            }
                        }
                    }
                }
            }
        }
    } }
}

/// How many pages that worked still give the same record, and what is not the same on the others.
fn good_pages(good: &GoodCheck) -> Markup {
    let is_same = good.same == good.of;
    let verb = if good.fields.len() == 1 { " is not" } else { " are not" };
    html! {
        p.good-check class={ @if is_same { "good-text" } @else { "warn-text" } } {
            (part_of(good.same as i64, good.of as i64))
            @if good.of == 1 { " good page still gives" } @else { " good pages still give" } " the same record"
            @if !is_same && !good.fields.is_empty() {
                ": " (text(&good.fields.join(", "))) (verb) @if good.same > 0 { " on the others" }
                ". If both layouts are there, one rule can name both, with what is read of them once: " code { ".old, .new::text" }
            }
            "."
        }
    }
}
