//! `/settings/tokens`: who may what.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use redrive::tokens::NewToken;
use redrive_core::ids::TokenName;
use redrive_core::paths::in_path;
use redrive_core::time::Timestamp;
use redrive_core::tokens::{PipelinePattern, Role, Token};

use super::confirm::{self, Question, entry_as};
use super::fields::{Done, Fields, carried, once, with_said};
use super::part::part;
use super::parts::{column, column_unseen, columns, command, command_of_form, instant, link, name, section_head};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::{Named, future};
use crate::error::ApiError;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let body = match may(&visitor) {
        Ok(()) => {
            let tokens = async {
                let tokens = app.redrive().list_tokens().await?;
                Ok(html! { (list(&visitor, &tokens, app.redrive().now())) (form(&visitor, tokens.is_empty())) })
            };
            part(&visitor, ("tokens", "Tokens"), tokens).await
        }
        Err(_) => {
            html! {
                p.empty {
                    "Tokens are for who may do everything in all pipelines; you are " (visitor.caller.role()) "."
                }
                p.actions { (button_off(&visitor)) }
            }
        }
    };
    let body = html! {
        div.head {
            h1 { "Settings" }
            @if visitor.query().one("said") == Some("revoke") { div.said role="status" { "Revoked." } }
        }
        (body)
        section aria-labelledby="browser" {
            (section_head("browser", "This browser", ""))
            noscript { p { "Light or dark follows the system." } }
            p.entry data-scripted="" hidden {
                label for="theme" { "Colours" }
                select #theme data-theme-choice="" {
                    option value="" { "as the system has them" }
                    option value="light" { "light" }
                    option value="dark" { "dark" }
                }
            }
            p.under data-scripted="" hidden {
                "Shortcuts: " kbd { "?" } " on any page lists them; "
                button.plainly.small type="button" data-toggle-keys="" { "turn shortcuts off" }
            }
        }
    };
    shell::show(&app, &visitor, Page { place: Place::Settings, title: "Settings", pipeline: None, body }).await
}

/// What somebody could press who may handle tokens, with what it needs.
fn button_off(visitor: &Visitor) -> Markup {
    let why = visitor.lacks(Role::Admin).unwrap_or_else(|| "needs admin of all pipelines".to_owned());
    html! { button disabled title=(why) { "Make a token" } span.vh.why { (why) } }
}

/// Refuses who may not handle tokens: who is let near some pipelines only could make one for others.
fn may(visitor: &Visitor) -> Result<(), Problem> {
    visitor.needs(Role::Admin)?;
    match visitor.caller.covers_all() {
        true => Ok(()),
        false => {
            Err(ApiError::forbidden("role_required", "tokens are for who may do everything in all pipelines").into())
        }
    }
}

fn list(visitor: &Visitor, tokens: &[Token], now: Timestamp) -> Markup {
    html! {
        section.sub aria-labelledby="tokens" {
            (section_head("tokens", "Tokens", ""))
            @if tokens.is_empty() {
                p.headline.warn {
                    "This store has no token: whoever reaches this server may do everything, so it listens on this machine only. From the first token on everybody signs in."
                }
            } @else {
                table.tokens role="table" {
                    (columns(&[
                        column("Name"), column("Role"), column("Pipelines"), column("Payloads"),
                        column("Last used"), column("Expires"), column_unseen("Actions"),
                    ]))
                    tbody role="rowgroup" {
                        @for token in tokens {
                            tr role="row" .settled[!token.is_good(now)] {
                                th role="rowheader" scope="row" { (name(token.name.as_str())) }
                                td role="cell" data-l="role" { (token.role) }
                                td role="cell" data-l="pipelines" {
                                    @if token.pipelines.is_empty() { "all" }
                                    @for (at, pattern) in token.pipelines.iter().enumerate() {
                                        @if at > 0 { ", " }
                                        (pattern)
                                    }
                                }
                                td role="cell" data-l="payloads" { @if token.payloads { "yes" } @else { "no" } }
                                td role="cell" data-l="last used" {
                                    @match token.last_used_at { Some(at) => (instant(at, now)), None => { "never" } }
                                }
                                td role="cell" data-l="expires" {
                                    @match (token.revoked_at, token.expires_at) {
                                        (Some(at), _) => { "revoked " (instant(at, now)) }
                                        (None, Some(at)) => (instant(at, now)), (None, None) => { "never" }
                                    }
                                }
                                td.num role="cell" {
                                    @if token.is_good(now) {
                                        (link(visitor, Role::Admin, &format!("/settings/tokens/{}/revoke", in_path(token.name.as_str())), "Revoke…", "plainly small", None))
                                    }
                                }
                            }
                        }
                    }
                }
                (command("redrive token list"))
            }
        }
    }
}

fn form(visitor: &Visitor, is_first: bool) -> Markup {
    html! {
        section aria-labelledby="make" {
            (section_head("make", "Make a token", if is_first { "the first is an admin's" } else { "its secret is shown once" }))
            form method="post" action="/settings/tokens/create" {
                (carried(visitor))
                div.row-of {
                    (entry_as("name", "Name", "", true, Some("")))
                    p.entry {
                        label for="role" { "Role" }
                        select #role name="role" data-flag="--role" {
                            @for role in Role::ALL.into_iter().rev() {
                                @if !is_first || role == Role::Admin { option value=(role) { (role) } }
                            }
                        }
                    }
                    @if !is_first { (entry_as("pipelines", "Pipelines, with commas; empty means all", "", false, Some("--pipeline"))) }
                    (entry_as("expires", "Expires: 90d, a day or a time; empty means never", "", false, Some("--expires")))
                }
                p {
                    label.choice {
                        input type="checkbox" name="payloads" value="yes" checked; span { "May read payloads" }
                    }
                }
                p.actions { button { "Make a token" } }
            }
            (command_of_form("redrive token create", &format!(" NAME --role {}", if is_first { "admin" } else { "viewer" })))
        }
    }
}

/// Makes a token, and shows its secret once. It is made anew by who sends the form again: the secret is kept nowhere.
pub async fn create(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    may(&visitor)?;
    let needed = |name: &str| fields.one(name).ok_or_else(|| ApiError::invalid(name, format!("{name} is missing")));
    let wrong = |field: &'static str| move |why: String| ApiError::invalid(field, why);
    let patterns = fields.one("pipelines").unwrap_or_default().split([',', ' ']).filter(|text| !text.is_empty());
    let pipelines: Vec<PipelinePattern> =
        patterns.map(|text| text.parse().map_err(wrong("pipelines"))).collect::<Result<_, _>>()?;
    let named: TokenName = TokenName::try_from(needed("name")?.to_owned())
        .map_err(|error| ApiError::invalid("name", error.to_string()))?;
    let new = NewToken {
        name: named,
        role: needed("role")?.parse().map_err(wrong("role"))?,
        pipelines,
        payloads: fields.one("payloads").is_some(),
        expires_at: future("expires", fields.one("expires"), app.redrive().now())?,
    };
    let made = app.redrive().create_token(&new, &visitor.caller.actor()).await?;
    app.forget_tokens();
    let body = html! {
        div.head { h1 { "Token " (made.token.name) } }
        p.headline.good { "This is its secret. It is shown now, and never again." }
        pre.code #secret { (made.secret) }
        p.actions { a.button.primary href="/settings/tokens" { "I have it" } }
        @if visitor.caller.is_local() { p.fact { "From now on everybody signs in, you too." } }
    };
    Ok(shell::show(&app, &visitor, Page { place: Place::Settings, title: "Token", pipeline: None, body })
        .await?
        .into_response())
}

/// Asks before a token is revoked.
pub async fn ask(
    State(app): State<App>,
    visitor: Visitor,
    Named(named): Named<TokenName>,
) -> Result<Response, Problem> {
    may(&visitor)?;
    let title = format!("Revoke {named}?");
    let effect = html! { "Whoever uses the token " (named) " is refused from now on, by every server of this store; who is signed in with it is signed out. This cannot be taken back." };
    let (action, yes) = (format!("/settings/tokens/{}/revoke", in_path(named.as_str())), format!("Revoke {named}"));
    let command = format!("redrive token revoke {named}");
    let question = Question {
        title: &title,
        effect,
        action: &action,
        fields: html! {},
        yes: &yes,
        command,
        filled: String::new(),
        back: "/settings/tokens",
    };
    let body = confirm::final_page(&visitor, &question);
    shell::show(&app, &visitor, Page { place: Place::Settings, title: &title, pipeline: None, body }).await
}

/// Revokes a token.
pub async fn revoke(
    State(app): State<App>,
    visitor: Visitor,
    Named(named): Named<TokenName>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        may(&visitor)?;
        app.redrive().revoke_token(&named, &visitor.caller.actor()).await?;
        app.forget_tokens();
        Ok(Done::At(with_said("/settings/tokens", &[("said", "revoke")])))
    })
    .await
}
