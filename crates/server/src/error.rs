//! The one form in which mistakes are told: a stable code, a sentence for people, and the field that is wrong, if one is.

use std::io;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redrive::access::AccessError;
use redrive::alerts::AlertError;
use redrive::breakers::BreakerError;
use redrive::detail::Detail;
use redrive::pipelines::PipelineError;
use redrive::replays::ReplayError;
use redrive::vault::VaultError;
use redrive::{Error, ErrorKind, StoreError};
use redrive_core::failures::with_sources;
use redrive_core::ids::PipelineName;
use redrive_core::jobs::InputTooLarge;
use redrive_core::tokens::Role;
use rustix::io::Errno;
use serde::Serialize;
use utoipa::ToSchema;

/// How long who came too often is asked to wait.
const SOON: Duration = Duration::from_secs(1);

/// When to come again if a person has to make room first.
const LATER: Duration = Duration::from_secs(60);

/// When to come again if the vault is away.
const VAULT_AFTER: Duration = Duration::from_secs(5);

/// Why a request was not done.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    told: Told,
    retry_after: Option<Duration>,
}

/// What is told of a mistake.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Told {
    /// What it is, for programs: never changes its meaning.
    #[schema(value_type = String)]
    code: &'static str,
    /// What it is, for people.
    message: String,
    /// The field of the request that is wrong, if one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// What exactly, for programs that know more: one field, named by what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    detail: Option<Detail>,
}

/// The whole answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct Envelope {
    /// What went wrong.
    error: Told,
}

impl ApiError {
    /// A mistake with its code.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, told: Told { code, message: message.into(), field: None, detail: None }, retry_after: None }
    }

    /// A field that is wrong.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message).at(field)
    }

    /// What was asked for makes no sense as a whole.
    pub fn senseless(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    /// Nobody is known by what was sent.
    pub fn unknown_caller(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    /// Who asks is known and may not.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// Who asks has too small a role.
    pub fn needs_role(role: Role, has: Role) -> Self {
        AccessError::RoleRequired { needs: role, has }.into()
    }

    /// Who asks is not let near a pipeline. Its name is not told: they may have asked by a number, to learn whose it is.
    pub fn foreign_pipeline() -> Self {
        AccessError::ForeignPipeline.into()
    }

    /// The same of a pipeline that they named.
    pub fn named_foreign_pipeline(name: &PipelineName) -> Self {
        Self::forbidden("foreign_pipeline", format!("this token is not for pipeline {name}")).at("pipeline")
    }

    /// There is no such thing.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// It came in too much at once: less of it may come at once.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self { retry_after: Some(SOON), ..Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message) }
    }

    /// An input is longer than its pipeline accepts, however often it is sent.
    pub fn input_too_large(field: String, why: InputTooLarge) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "input_too_large", why.to_string()).at(field)
    }

    /// It did not come in time: what is sent faster may be taken.
    pub fn too_slow(message: impl Into<String>) -> Self {
        Self { retry_after: Some(SOON), ..Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message) }
    }

    /// The address and the headers are too long.
    pub fn head_too_large(message: impl Into<String>) -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self { retry_after: Some(SOON), ..Self::new(status, "head_too_large", message) }
    }

    /// It is to be done under a condition that is not understood here.
    pub fn condition_unknown(header: &str) -> Self {
        let why = "what was seen is named by its `version`, in the body: tags are for who reads";
        Self::new(StatusCode::BAD_REQUEST, "version_required", why).at(header)
    }

    /// A new pipeline would be one too many.
    pub fn too_many_pipelines(name: &PipelineName, most: usize) -> Self {
        let why = format!(
            "pipeline {name} is new, and {most} have come into being over the network: define it in redrive.toml, forget empty ones (`redrive pipeline forget`), or raise --max-pipelines"
        );
        let refused = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_pipelines", why).at("pipeline");
        Self { retry_after: Some(LATER), ..refused }
    }

    /// It comes too often.
    pub fn too_many(message: impl Into<String>) -> Self {
        Self { retry_after: Some(SOON), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message) }
    }

    /// Its status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// What it is, for programs.
    pub const fn code(&self) -> &'static str {
        self.told.code
    }

    /// What it is, for people.
    pub fn message(&self) -> &str {
        &self.told.message
    }

    /// The field of the request that is wrong, if one is.
    pub fn field(&self) -> Option<&str> {
        self.told.field.as_deref()
    }

    /// The same with the field that is wrong.
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.told.field = Some(field.into());
        self
    }

    /// It cannot be done for now, and may be after so long.
    pub fn unavailable(code: &'static str, message: impl Into<String>, after: Duration) -> Self {
        Self { retry_after: Some(after), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message) }
    }

    /// Something failed on the way. What exactly is for the log: it may name paths of this machine.
    fn failed(error: &(dyn std::error::Error + 'static)) -> Self {
        if let Some(passing) = Self::of_machine(error) {
            tracing::warn!(error = %with_sources(error), "a request could not be done for now");
            return passing;
        }
        tracing::error!(error = %with_sources(error), "a request could not be done");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "something failed on the server: its log says what")
    }
}

impl ApiError {
    /// Returns what the machine lacks for now, if something failed for that reason.
    fn of_machine(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let causes = std::iter::successors(Some(error), |&cause| inner(cause));
        causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).find_map(|io| match io.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Some(Self::unavailable("disk_full", "a disk of the server is full", Duration::from_secs(30)))
            }
            _ if matches!(Errno::from_io_error(io), Some(Errno::MFILE | Errno::NFILE)) => {
                Some(Self::unavailable("no_files", "the server has too many files open", SOON))
            }
            _ => None,
        })
    }
}

/// Returns the causes of an error: an error of the system may have another one inside, which its own source does not name.
fn inner<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inside) => Some(inside),
        None => error.source(),
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(Envelope { error: self.told.clone() })).into_response();
        if let Some(after) = self.retry_after {
            let secs = after.as_secs_f64().ceil().max(1.0) as u64;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Pages show it as a page.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let detail = Detail::of_store(&error);
        Self::of_store(error).with(detail)
    }
}

impl ApiError {
    fn with(mut self, detail: Option<Detail>) -> Self {
        self.told.detail = detail;
        self
    }

    fn of_store(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::QueueFull { .. } => {
                Self { retry_after: Some(SOON), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", text) }
            }
            StoreError::LettersFull { .. } => {
                Self { retry_after: Some(LATER), ..Self::new(StatusCode::TOO_MANY_REQUESTS, "letters_full", text) }
            }
            StoreError::Busy { retry_after, .. } => Self::unavailable("store_busy", "the store is busy", retry_after),
            StoreError::InvalidCursor(_) => Self::invalid("cursor", text),
            StoreError::NoCause(_) | StoreError::NoReplay(_) => Self::missing(text),
            StoreError::AmbiguousCause(_) => Self::new(StatusCode::BAD_REQUEST, "ambiguous", text),
            StoreError::TooBroad { .. } => Self::too_large(text),
            StoreError::Conflict { .. } => Self::new(StatusCode::CONFLICT, "changed_meanwhile", text),
            StoreError::DiskFull { .. } | StoreError::NoRoom { .. } => {
                Self::unavailable("disk_full", "the disk of the store is full", Duration::from_secs(30))
            }
            StoreError::Unavailable { .. } | StoreError::Unanswered { .. } => {
                Self::unavailable("store_unavailable", "the store does not answer", Duration::from_secs(5))
            }
            StoreError::ReadOnly { .. } => {
                Self::unavailable("read_only", "the store cannot be written", Duration::from_secs(30))
            }
            other => Self::failed(&other),
        }
    }
}

impl From<AccessError> for ApiError {
    fn from(error: AccessError) -> Self {
        Error::from(error).into()
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Store(error) => return error.into(),
            Error::Vault(vault) => match *vault {
                VaultError::Store(error) => return error.into(),
                vault => return Self::of_vault(vault),
            },
            error => error,
        };
        let text = with_sources(&error);
        let told = match error.kind() {
            ErrorKind::Invalid => Self::senseless(text),
            ErrorKind::Forbidden => Self::forbidden(code_of_access(&error), text),
            ErrorKind::Missing => Self::missing(text),
            ErrorKind::Refused => Self::new(StatusCode::CONFLICT, code_of_refusal(&error), text),
            ErrorKind::Failed => Self::failed(&error),
        };
        let told = match error.field() {
            Some(field) => told.at(field),
            None => told,
        };
        told.with(Detail::of(&error))
    }
}

impl ApiError {
    fn of_vault(error: VaultError) -> Self {
        let Some(address) = error.away() else { return Self::failed(&error) };
        // Its disk may be full, which somebody has to see to.
        if let Some(passing) = Self::of_machine(&error) {
            return passing;
        }
        tracing::warn!(error = %with_sources(&error), "the vault is away");
        let why = format!("the vault at {address} is away: try again later");
        Self::unavailable("vault_unavailable", why, VAULT_AFTER)
    }
}

fn code_of_access(error: &Error) -> &'static str {
    match error {
        Error::Access(error) => error.code(),
        _ => "forbidden",
    }
}

fn code_of_refusal(error: &Error) -> &'static str {
    match error {
        Error::ChangedMeanwhile(_)
        | Error::Pipeline(PipelineError::SeenOtherwise { .. })
        | Error::Breaker(BreakerError::SeenOtherwise(_))
        | Error::Alert(AlertError::SeenOtherwise(_))
        | Error::Replay(ReplayError::SeenOtherwise(_)) => "changed_meanwhile",
        Error::Dead(_) => "not_dead",
        Error::Job(_) => "job_ended",
        Error::Breaker(_) => "breaker_closed",
        Error::Pipeline(_) => "pipeline_state",
        Error::Replay(_) => "replay_state",
        Error::Unchangeable { .. } => "unchangeable",
        Error::Token(_) => "token_refused",
        _ => "refused",
    }
}

#[cfg(test)]
mod tests {
    use redrive::dead::DeadError;
    use redrive::tasks::TasksError;

    use super::*;

    #[test]
    fn what_fails_inside_is_not_told_to_who_asks() {
        let inner = StoreError::Database { place: "/srv/secret/redrive.db".into(), message: "no such table".into() };
        let told = ApiError::from(Error::from(inner));
        assert_eq!((told.status, told.told.code), (StatusCode::INTERNAL_SERVER_ERROR, "internal"));
        assert!(!told.told.message.contains("secret"), "{}", told.told.message);
    }

    #[test]
    fn what_the_machine_lacks_is_there_again_later() {
        let of_io: [fn(io::Error) -> Error; 6] = [
            |source| Error::Sink { place: "results.jsonl".to_owned(), source },
            |source| DeadError::Unwritten(source).into(),
            |source| DeadError::Unreadable { place: "letters.jsonl".to_owned(), source }.into(),
            |source| TasksError::NoTemporaryFile(source).into(),
            |source| Error::Vault(Box::new(VaultError::Io { address: "file:vault".to_owned(), source })),
            |source| DeadError::Unwritten(io::Error::other(source)).into(),
        ];
        for (n, of_io) in of_io.into_iter().enumerate() {
            let told = |errno: Errno| ApiError::from(of_io(io::Error::from_raw_os_error(errno.raw_os_error())));
            for (errno, code) in [
                (Errno::NOSPC, "disk_full"),
                (Errno::DQUOT, "disk_full"),
                (Errno::MFILE, "no_files"),
                (Errno::NFILE, "no_files"),
            ] {
                let told = told(errno);
                assert_eq!((told.status, told.told.code), (StatusCode::SERVICE_UNAVAILABLE, code), "{n}: {errno}");
                assert!(told.retry_after.is_some(), "{n}: {errno}");
            }
            assert_eq!(told(Errno::IO).status, StatusCode::INTERNAL_SERVER_ERROR, "{n}");
        }
        let full = StoreError::DiskFull { place: "redrive.db".to_owned() };
        let told = ApiError::from(Error::Vault(Box::new(full.into())));
        assert_eq!((told.status, told.told.code), (StatusCode::SERVICE_UNAVAILABLE, "disk_full"));
    }

    #[test]
    fn who_may_come_again_is_told_when() {
        let full = StoreError::QueueFull { pipeline: "p".parse().expect("a name"), queued: 5, max: 5 };
        let response = ApiError::from(full).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }
}
