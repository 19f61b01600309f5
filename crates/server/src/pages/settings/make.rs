//! Making a token: its form, and its secret, which is shown once to who made it. A form that is sent twice shows the same secret for
//! a moment, also to who has to sign in from then on: else a double click would lose it.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use redrive::tokens::{NewToken, TokenError};
use redrive_core::ids::TokenName;
use redrive_core::tokens::{PipelinePattern, Role};

use super::super::confirm::entry_as;
use super::super::fields::{Fields, carried, key_of};
use super::super::parts::{about, command_of_form, flag, section_head, typed};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use super::may;
use crate::app::App;
use crate::asked::future;
use crate::error::ApiError;

/// The form, as it was filled in and with what is wrong about that.
pub fn section(visitor: &Visitor, is_first: bool, filled: &Fields, wrong: Option<&Problem>) -> Markup {
    let of = |name: &str| filled.one(name).unwrap_or_default();
    let least = if is_first { Role::Admin } else { Role::Viewer };
    let chosen = filled.one("role").and_then(|role| role.parse().ok()).unwrap_or(least);
    let is_closed = of("payloads") == "no";
    html! {
        section aria-labelledby="make" {
            (section_head("make", "Make a token", if is_first { "the first is an admin's" } else { "its secret is shown once" }))
            @if let Some(wrong) = wrong { p.headline.warn role="alert" { bdi { (wrong.message()) } } }
            form method="post" action="/settings/tokens/create" {
                (carried(visitor))
                div.row-of {
                    (entry_as("name", "Name", of("name"), true, Some("")))
                    p.entry {
                        label for="role" { "Role" }
                        select #role name="role" data-flag="--role" {
                            @for role in Role::ALL {
                                @if !is_first || role == Role::Admin {
                                    option value=(role) selected[role == chosen] { (role) }
                                }
                            }
                        }
                    }
                    @if !is_first {
                        (entry_as("pipelines", "Pipelines, with commas; empty means all", of("pipelines"), false, Some("--pipeline")))
                    }
                    (entry_as("expires", "Expires: 90d, a day or a time; empty means never", of("expires"), false, Some("--expires")))
                }
                p {
                    label.choice {
                        input type="radio" name="payloads" value="yes" checked[!is_closed] data-flag="--payloads";
                        span { "May read payloads" }
                    }
                    label.choice {
                        input type="radio" name="payloads" value="no" checked[is_closed] data-flag="--no-payloads" data-bare="";
                        span { "May not read payloads" }
                    }
                }
                p.actions { button { "Make a token" } }
            }
            (command_of_form(visitor, "redrive token create", &flags(filled, chosen)))
        }
    }
}

/// The rest of the command, by what is filled in already.
fn flags(filled: &Fields, role: Role) -> String {
    let said = |name: &str, as_flag: &str| filled.one(name).map(|text| flag(as_flag, text));
    let others = [said("pipelines", "pipeline"), said("expires", "expires")].into_iter().flatten();
    let closed = if filled.one("payloads") == Some("no") { " --no-payloads" } else { "" };
    let flags = format!(" --role {role}{}{closed}", others.collect::<String>());
    typed(&about("", filled.one("name").unwrap_or("NAME"), &flags), "")
}

/// What a form asks for.
fn wanted(app: &App, fields: &Fields) -> Result<NewToken, Problem> {
    let needed = |name: &str| fields.one(name).ok_or_else(|| ApiError::invalid(name, format!("{name} is missing")));
    let wrong = |field: &'static str| move |why: String| ApiError::invalid(field, why);
    let patterns =
        fields.one("pipelines").unwrap_or_default().split(',').map(str::trim).filter(|text| !text.is_empty());
    let pipelines: Vec<PipelinePattern> =
        patterns.map(|text| text.parse().map_err(wrong("pipelines"))).collect::<Result<_, _>>()?;
    let named = TokenName::try_from(needed("name")?.to_owned());
    Ok(NewToken {
        name: named.map_err(|error| ApiError::invalid("name", error.to_string()))?,
        role: needed("role")?.parse().map_err(wrong("role"))?,
        pipelines,
        payloads: fields.one("payloads") == Some("yes"),
        expires_at: future("expires", fields.one("expires"), app.redrive().now())?,
    })
}

/// Makes a token, and shows its secret.
pub async fn create(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    may(&visitor)?;
    let key = shown_by(&visitor.form_token(), key_of(&fields)?);
    let _turn = app.alone("forms", &key).await;
    let made = match app.shown().find(&key) {
        Some(made) => Ok(made),
        None => make(&app, &visitor, &fields).await,
    };
    let page = |body| Page { place: Place::Settings, title: "Token", pipeline: None, body };
    match made {
        Ok(made) => {
            app.shown().keep(key, made.clone());
            shell::show(&app, &visitor, page(made)).await
        }
        Err(problem) if problem.is_mistake() => {
            let is_first = app.redrive().list_tokens().await?.is_empty();
            let body = html! {
                div.head { h1 { "No token was made" } }
                (section(&visitor, is_first, &fields, Some(&problem)))
                p.actions { a.button href="/settings/tokens" { "Settings" } }
            };
            Ok((problem.status(), shell::show(&app, &visitor, page(body)).await?).into_response())
        }
        Err(problem) => Err(problem),
    }
}

async fn make(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Markup, Problem> {
    let new = wanted(app, fields)?;
    let made = match app.redrive().create_token(&new, &visitor.caller.actor()).await {
        // What was filled in can be mended: nothing changed meanwhile.
        Err(redrive::Error::Token(error @ (TokenError::NameTaken(_) | TokenError::Refused(_)))) => {
            return Err(ApiError::senseless(error.to_string()).into());
        }
        made => made?,
    };
    app.forget_tokens();
    Ok(html! {
        div.head { h1 { "Token " (made.token.name) } }
        p.headline.good { "This is its secret. It is shown now, and never again." }
        pre.code #secret { (made.secret) }
        p.actions { a.button.primary href="/settings/tokens" { "I have it" } }
        @if visitor.caller.is_local() { p.fact { "From now on everybody signs in, you too." } }
    })
}

fn shown_by(form_token: &str, key: &str) -> String {
    format!("token {form_token} {key}")
}

/// The secret that a form was answered with a moment ago, for who sent it while nobody had to sign in.
pub async fn made_before(app: &App, secret: Option<&str>, fields: &Fields) -> Option<Markup> {
    let form_token = Visitor::form_token_of(secret?);
    if fields.one("form") != Some(form_token.as_str()) {
        return None;
    }
    let key = shown_by(&form_token, key_of(fields).ok()?);
    let _turn = app.alone("forms", &key).await;
    Some(shell::bare("Token", None, &app.shown().find(&key)?))
}
