//! Targets that are waited for, and what people do about it.

use redrive::Error;
use redrive::breakers::spelled;
use redrive_core::actors::Actor;
use redrive_core::breakers::{BreakerTurn, BreakerView};
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use serde_json::json;

use crate::desk::Desk;
use crate::page::{all, fields};

/// Where breakers were turned.
#[derive(Deserialize)]
struct Turned {
    pipelines: Vec<PipelineName>,
}

impl Desk {
    /// See [`redrive::Redrive::list_breakers`].
    pub async fn list_breakers(&self, pipeline: Option<&PipelineName>) -> Result<Vec<BreakerView>, Error> {
        match self {
            Self::Here(redrive) => redrive.list_breakers(pipeline).await,
            Self::There(server) => all(server, &["breakers"], fields(json!({ "pipeline": pipeline }))).await,
        }
    }

    /// See [`redrive::Redrive::breaker_target`].
    pub async fn breaker_target(&self, typed: &str) -> Result<String, Error> {
        Ok(spelled(&self.list_breakers(None).await?, typed))
    }

    /// See [`redrive::Redrive::turn_breakers`]. A server knows by itself who it is by.
    pub async fn turn_breakers(
        &self,
        target: &str,
        pipeline: Option<&PipelineName>,
        turn: &BreakerTurn,
        by: &Actor,
    ) -> Result<Vec<PipelineName>, Error> {
        let server = match self {
            Self::Here(redrive) => return redrive.turn_breakers(target, pipeline, turn, by).await,
            Self::There(server) => server,
        };
        let (verb, held) = match turn {
            BreakerTurn::Close => ("close", None),
            BreakerTurn::Probe => ("probe", None),
            BreakerTurn::Hold(held) => ("hold", Some(held)),
        };
        let (until, why) = (held.and_then(|held| held.until), held.and_then(|held| held.why.as_ref()));
        let asked = json!({ "target": target, "pipeline": pipeline, "until": until, "why": why });
        Ok(server.post(&["breakers", verb]).body(&asked)?.read::<Turned>().await?.pipelines)
    }
}
