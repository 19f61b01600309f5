//! `/settings/tokens`: who may what.

mod make;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive_core::ids::TokenName;
use redrive_core::paths::in_path;
use redrive_core::time::Timestamp;
use redrive_core::tokens::{Role, Token};

pub use self::make::{create, made_before};
use super::confirm::{self, Question};
use super::fields::{Done, Fields, once, with_said};
use super::part::part;
use super::parts::{about, column, column_unseen, columns, command, instant, link, name, section_head};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let body = match may(&visitor) {
        Ok(()) => {
            let tokens = async {
                let tokens = app.redrive().list_tokens().await?;
                Ok(
                    html! { (list(&visitor, &tokens, app.redrive().now())) (make::section(&visitor, tokens.is_empty(), &Fields::default(), None)) },
                )
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
                (command(visitor, "redrive token list"))
            }
        }
    }
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
    let command = about("redrive token revoke", named.as_str(), "");
    let question = Question {
        title: &title,
        about: html! { li { "token " (named) } },
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
