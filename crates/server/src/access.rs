//! Who asks, and what they may do.

use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use redrive::Error;
use redrive::access::AccessError;
use redrive::pipelines::{PipelineError, PipelineView};
use redrive_core::actors::{Actor, Via};
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::tokens::{PipelinePattern, Role, Token, TokenHash};

use crate::app::App;
use crate::error::ApiError;
use crate::held::Held;
use crate::measured::Who;
use crate::places::Place;

/// Actor name recorded for requests while the store has no token.
const LOCAL: &str = "local";

/// The way in while the store has no token.
const NO_TOKEN_YET: &str = "the store has no token yet: send what is in its token file, which `redrive serve` names, as \
                            `Authorization: Bearer TOKEN`; on this machine the redrive command finds it by itself";

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Their token; none while the store has never had one, and they are on this machine.
    token: Option<Token>,
    /// The way by which they ask.
    via: Via,
}

impl Caller {
    /// What they are called in the record.
    pub fn name(&self) -> &str {
        self.token.as_ref().map_or(LOCAL, |token| token.name.as_str())
    }

    /// Who they are, for the record.
    pub fn actor(&self) -> Actor {
        Actor::new(self.name(), self.via)
    }

    /// Returns the caller as operations know it.
    pub fn to_api(&self) -> redrive::api::Caller {
        let (actor, role, pipelines) = (self.actor(), self.role(), self.within());
        redrive::api::Caller { actor, role, pipelines, payloads: self.check_payloads().is_ok(), is_remote: true }
    }

    /// What they may do at most.
    pub fn role(&self) -> Role {
        self.token.as_ref().map_or(Role::Admin, |token| token.role)
    }

    /// Returns true if the token file let them in, because the store has no token.
    pub const fn is_local(&self) -> bool {
        self.token.is_none()
    }

    /// Their token, if they have one.
    pub const fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Whether they may do what a role may.
    pub fn has(&self, role: Role) -> bool {
        self.token.as_ref().is_none_or(|token| token.role >= role)
    }

    /// Whether a pipeline is theirs to see.
    pub fn covers(&self, name: &PipelineName) -> bool {
        self.token.as_ref().is_none_or(|token| token.covers(name))
    }

    /// Whether all pipelines are.
    pub fn covers_all(&self) -> bool {
        self.token.as_ref().is_none_or(|token| token.pipelines.is_empty())
    }

    /// The pipelines that are, as lists of the store are asked for; none means all.
    pub fn within(&self) -> Vec<PipelinePattern> {
        self.token.as_ref().map(|token| token.pipelines.clone()).unwrap_or_default()
    }

    /// Whether each of these pipelines is, as of a replay that is theirs to see.
    pub fn covers_each<'a>(&self, names: impl IntoIterator<Item = &'a PipelineName>) -> bool {
        names.into_iter().all(|name| self.covers(name))
    }

    /// Returns true if one of these pipelines is, or all are.
    pub fn covers_any<'a>(&self, names: impl IntoIterator<Item = &'a PipelineName>) -> bool {
        self.covers_all() || names.into_iter().any(|name| self.covers(name))
    }

    /// Refuses a pipeline that is not theirs.
    pub fn check(&self, name: &PipelineName) -> Result<(), ApiError> {
        match self.covers(name) {
            true => Ok(()),
            false => Err(ApiError::foreign_pipeline()),
        }
    }

    /// Refuses pipelines that they named and of which one is not theirs.
    pub fn check_named<'a>(&self, names: impl IntoIterator<Item = &'a PipelineName>) -> Result<(), ApiError> {
        let foreign = names.into_iter().find(|name| !self.covers(name));
        foreign.map_or(Ok(()), |name| Err(ApiError::named_foreign_pipeline(name)))
    }

    /// Refuses pipelines of which one is not theirs.
    pub fn check_each<'a>(&self, names: impl IntoIterator<Item = &'a PipelineName>) -> Result<(), ApiError> {
        names.into_iter().try_for_each(|name| self.check(name))
    }

    /// Refuses jobs of which one is in a pipeline that is not theirs.
    pub async fn check_jobs(&self, app: &App, jobs: &[JobId]) -> Result<(), ApiError> {
        if self.covers_all() {
            return Ok(());
        }
        for id in jobs {
            self.check(&app.redrive().job(*id).await?.job.pipeline)?;
        }
        Ok(())
    }

    /// Refuses what is about all pipelines to who may see only some.
    pub fn check_all(&self, filter: Option<&PipelineName>) -> Result<(), ApiError> {
        match (filter, self.covers_all()) {
            (Some(name), _) => self.check(name),
            (None, true) => Ok(()),
            (None, false) => Err(AccessError::PipelineRequired.into()),
        }
    }

    /// A pipeline that must be there; who may not see all is told of theirs, where it is not.
    pub async fn find_pipeline(&self, app: &App, name: &PipelineName) -> Result<PipelineView, ApiError> {
        let found = app.redrive().find_pipeline(&app.setting(), name).await;
        Ok(found.map_err(|error| match error {
            Error::Pipeline(PipelineError::Unknown { name, mut known }) => {
                known.retain(|name| self.covers(name));
                PipelineError::Unknown { name, known }.into()
            }
            error => error,
        })?)
    }

    /// Whether they would be let in now: who follows something may have been let in long ago.
    pub async fn is_let_in(&self, app: &App) -> Result<bool, ApiError> {
        let (known, now) = (app.tokens().await?, app.redrive().now());
        Ok(match &self.token {
            None => known.is_empty(),
            Some(own) => known.iter().any(|known| known.token.name == own.name && known.token.is_good(now)),
        })
    }

    /// Takes what was found on pages out of failures, for who may not read payloads.
    pub fn strip<'a>(&self, failures: impl IntoIterator<Item = &'a mut Failure>) {
        if self.check_payloads().is_err() {
            failures.into_iter().for_each(Failure::forget_page);
        }
    }

    /// Takes what was found on pages, and where they lie, out of a letter, for who may not read payloads.
    pub fn strip_letter(&self, letter: &mut DeadLetter) {
        self.strip(letter.failures.iter_mut().flatten());
        if self.check_payloads().is_err() {
            letter.payload_address = None;
        }
    }

    /// Refuses payloads to who may not read them.
    pub fn check_payloads(&self) -> Result<(), ApiError> {
        match self.token.as_ref().is_none_or(|token| token.payloads) {
            true => Ok(()),
            false => Err(ApiError::forbidden("payloads_refused", "this token may not read payloads")),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let known = parts.extensions.get::<Self>().cloned();
        known.ok_or_else(|| ApiError::unknown_caller("nobody is known to ask"))
    }
}

/// Lets in who may do what a route does, and tells the route who it is.
pub async fn let_in(State((app, role)): State<(App, Role)>, mut request: Request, next: Next) -> Response {
    let caller = match identify(&app, request.headers()).await {
        Ok(caller) if caller.has(role) => caller,
        Ok(caller) => return ApiError::needs_role(role, caller.role()).into_response(),
        Err(error) => return error.into_response(),
    };
    let _held = match admit(&app, &caller, &mut request) {
        Ok(held) => held,
        Err(error) => return error.into_response(),
    };
    if let Some(token) = &caller.token {
        app.note_used(&token.name);
    }
    let who = Who(caller.name().to_owned());
    request.extensions_mut().insert(caller);
    let mut response = next.run(request).await;
    response.extensions_mut().insert(who);
    response
}

/// Takes a place among the requests of a caller. The request holds it until it is answered, or until its stream ends.
pub fn admit(app: &App, caller: &Caller, request: &mut Request) -> Result<Held, ApiError> {
    if let Some(place) = request.extensions().get::<Place>() {
        place.note_known();
    }
    let held = Held::default();
    held.keep(app.enter(caller.name())?);
    request.extensions_mut().insert(held.clone());
    Ok(held)
}

async fn identify(app: &App, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let came = Instant::now();
    let mut known = app.tokens().await?;
    let why_not =
        if known.is_empty() { NO_TOKEN_YET } else { "a token is needed: send it as `Authorization: Bearer TOKEN`" };
    let sent = headers.get(header::AUTHORIZATION).ok_or_else(|| ApiError::unknown_caller(why_not))?;
    let secret = sent.to_str().ok().and_then(|text| text.split_once(' '));
    let secret = secret.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, secret)| secret.trim());
    let secret = secret.ok_or_else(|| ApiError::unknown_caller("expected `Authorization: Bearer TOKEN`"))?;
    let is_local = app.local().is_some_and(|local| local.is(secret));
    match (known.is_empty(), is_local) {
        (true, true) => return Ok(Caller { token: None, via: Via::Api }),
        (true, false) => return Err(ApiError::unknown_caller(NO_TOKEN_YET)),
        (false, true) => {
            let why = "the store has tokens now, and its token file lets nobody in: a token is needed";
            return Err(ApiError::unknown_caller(why));
        }
        (false, false) => {}
    }
    let hash = TokenHash::of(secret);
    if !known.iter().any(|known| known.hash == hash) {
        known = app.tokens_since(came).await?;
    }
    // Each is compared, in constant time: how long it takes says nothing of which is alike.
    let found = known.iter().fold(None, |found, known| if known.hash == hash { Some(&known.token) } else { found });
    let now = app.redrive().now();
    match found {
        Some(token) if token.is_good(now) => Ok(Caller { token: Some(token.clone()), via: Via::Api }),
        Some(token) if token.revoked_at.is_some() => {
            Err(ApiError::unknown_caller(format!("token {} was revoked", token.name)))
        }
        Some(token) => Err(ApiError::unknown_caller(format!("token {} has expired", token.name))),
        None => Err(ApiError::unknown_caller("no such token")),
    }
}

/// Who looks at pages, by the secret that their browser sends; nobody if they have to sign in.
pub async fn identify_visitor(app: &App, secret: Option<&str>) -> Result<Option<Caller>, ApiError> {
    let (came, via) = (Instant::now(), Via::Web);
    let known = app.tokens().await?;
    let Some(secret) = secret else { return Ok(None) };
    if known.is_empty() {
        return Ok(is_local_session(app, secret).await?.then_some(Caller { token: None, via }));
    }
    let mut token = app.redrive().find_session(secret, &known).await?;
    if token.is_none() {
        // They may have signed in with a token that was made a moment ago.
        token = app.redrive().find_session(secret, &app.tokens_since(came).await?).await?;
    }
    if let Some(token) = &token {
        app.note_used(&token.name);
    }
    Ok(token.map(|token| Caller { token: Some(token), via }))
}

/// Returns true if a session was opened by the token file.
pub async fn is_local_session(app: &App, secret: &str) -> Result<bool, ApiError> {
    let Some(local) = app.local() else { return Ok(false) };
    Ok(app.redrive().session_token(secret).await? == Some(local.token()))
}
