//! Which dead letters: in a query, and in a body where they are given up or replayed.

use redrive::contract::{DeadFilter, Selection};
use redrive_core::causes::CauseId;
use redrive_core::dead::Gate;
use redrive_core::failures::Reason;
use redrive_core::ids::{JobRef, PipelineName, RoundName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Text, instant};
use crate::error::ApiError;
use crate::shapes;

/// The most letters that are named at once.
const IDS_MAX: usize = 10_000;

/// Which letters.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LetterFilter)]
pub struct Filter {
    /// Only of this pipeline.
    #[param(value_type = Option<shapes::Name>)]
    #[schema(value_type = Option<shapes::Name>)]
    pub pipeline: Option<PipelineName>,
    /// Only of this round.
    #[param(value_type = Option<shapes::Name>)]
    #[schema(value_type = Option<shapes::Name>)]
    pub round: Option<RoundName>,
    /// Only those that died for this reason.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Reason>,
    /// Only with this code.
    pub code: Option<String>,
    /// Only of this target.
    pub target: Option<String>,
    /// Only of this cause; the beginning of its id is enough.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub cause: Option<CauseId>,
    /// Only through this proxy, by its label.
    pub proxy: Option<String>,
    /// Only with this gate.
    #[param(value_type = Option<String>)]
    #[schema(value_type = Option<String>)]
    pub gate: Option<Gate>,
    /// Only those that died since: `2h` (ago), a day or a time.
    pub since: Option<String>,
    /// Only those that died before.
    pub until: Option<String>,
    /// Only those with this text in their key, message or input.
    pub text: Option<String>,
}

impl Filter {
    /// Whether somebody may have all that it finds. A cause is one of a pipeline, which need not be named beside it.
    pub async fn check(&self, app: &App, caller: &Caller) -> Result<(), ApiError> {
        match (&self.pipeline, &self.cause) {
            (None, Some(cause)) if !caller.covers_all() => {
                let found = app.redrive().store().get_cause(cause.clone(), app.redrive().now()).await?;
                caller.check(&found.cause.pipeline)
            }
            (pipeline, _) => caller.check_all(pipeline.as_ref()),
        }
    }

    /// The same for the engine. Relative times become absolute here.
    pub fn dead(self, app: &App) -> Result<DeadFilter, ApiError> {
        let now = app.redrive().now();
        Ok(DeadFilter {
            since: instant("since", self.since.as_deref(), now)?,
            until: instant("until", self.until.as_deref(), now)?,
            pipeline: self.pipeline,
            round: self.round,
            reason: self.reason,
            code: self.code,
            target: self.target,
            cause: self.cause,
            proxy: self.proxy,
            gate: self.gate,
            text: self.text,
            within: Vec::new(),
        })
    }
}

/// Which letters: by id, or by filters. Nothing in particular is refused: that would be all of them.
#[derive(Debug)]
pub struct Letters {
    ids: Vec<JobRef>,
    filter: Filter,
}

impl<'de> Deserialize<'de> for Letters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let ids = fields.remove("ids").unwrap_or_else(|| Value::Array(Vec::new()));
        let ids: Vec<Text<JobRef>> =
            serde_json::from_value(ids).map_err(|error| D::Error::custom(format!("ids: {error}")))?;
        let filter = serde_json::from_value(Value::Object(fields)).map_err(D::Error::custom)?;
        Ok(Self { ids: ids.into_iter().map(|id| id.0).collect(), filter })
    }
}

/// How [`Letters`] are written, for the document.
#[derive(ToSchema)]
#[schema(as = Letters)]
#[allow(dead_code, reason = "only its schema is of use")]
pub struct WrittenLetters {
    /// Which, by number, id or the end of an id: at most 10,000.
    #[schema(max_items = 10_000)]
    ids: Option<Vec<String>>,
    #[schema(inline)]
    #[serde(flatten)]
    filter: Filter,
}

impl Letters {
    /// The choice, as far as who chooses may.
    pub async fn selection(self, app: &App, caller: &Caller) -> Result<Selection, ApiError> {
        if self.ids.len() > IDS_MAX {
            return Err(ApiError::too_large(format!("{} letters at once: at most {IDS_MAX}", self.ids.len())).at("ids"));
        }
        let ids = app.redrive().find_jobs(&self.ids).await?;
        match ids.is_empty() {
            true => self.filter.check(app, caller).await?,
            false => caller.check_jobs(app, &ids).await?,
        }
        Ok(Selection { filter: self.filter.dead(app)?, ids })
    }
}
