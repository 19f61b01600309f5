//! Replays: planning and making them, looking at them, and changing those that are there. One that is made here for a server is for the
//! versions of pipelines that are here: who asks works on it, or leaves it to those of the server by naming none.

use std::collections::BTreeSet;

use redrive::config::Setting;
use redrive::contract::{ListReplayLetters, ListReplays, Page, ReplayLetter, ReplayView, Selection};
use redrive::dead::NotDead;
use redrive::replays::{AskedReplay, OPEN_REPLAYS, ReplayRef, ReplayWaits, StartedReplay, meant, wish};
use redrive::{Error, ErrorKind, Pipeline};
use redrive_core::actors::Actor;
use redrive_core::definitions::Pins;
use redrive_core::ids::{PipelineName, ReplayId};
use redrive_core::jobs::Input;
use redrive_core::replays::{ReplayChange, ReplayMode, ReplayPlan, Wish};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::{fields, page};
use crate::server::Server;

/// A replay that was begun, or what there was to begin.
#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    replay: Option<ReplayView>,
    plan: ReplayPlan,
    from: ReplayMode,
    #[serde(default)]
    not_dead: Vec<NotDead>,
    all_taken: bool,
}

/// What is run here for pipelines, as a server is told.
pub(crate) fn runs(pipelines: &[Pipeline], edited: bool) -> Vec<Value> {
    let of = |pipeline: &Pipeline| {
        let saved = pipeline.works_from_saved(edited);
        let mut runs = json!({ "pipeline": pipeline.name(), "definition": pipeline.definition(), "saved": saved });
        if pipeline.policy().breaker.hold_max.is_none() {
            runs["waits_forever"] = true.into();
        }
        runs
    };
    pipelines.iter().map(of).collect()
}

impl Desk {
    /// See [`redrive::Redrive::find_replay`].
    pub async fn find_replay(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        match self {
            Self::Here(redrive) => redrive.find_replay(which).await,
            Self::There(server) => server.get(&["replays", &which.to_string()]).read().await,
        }
    }

    /// A page of replays, newest first.
    pub async fn list_replays(&self, params: ListReplays) -> Result<Page<ReplayView>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.store().list_replays(params).await?),
            Self::There(server) => server,
        };
        let ListReplays { open_only, limit, cursor, .. } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = fields(json!({ "open": open_only, "limit": limit, "cursor": cursor }));
            server.get(&["replays"]).query(asked).read().await
        })
        .await
    }

    /// A page of the letters of a replay.
    pub async fn list_replay_letters(&self, params: ListReplayLetters) -> Result<Page<ReplayLetter>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.store().list_replay_letters(params).await?),
            Self::There(server) => server,
        };
        let ListReplayLetters { id, state, limit, cursor } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = fields(json!({ "state": state, "limit": limit, "cursor": cursor }));
            server.get(&["replays", &id.to_string(), "letters"]).query(asked).read().await
        })
        .await
    }

    async fn waits(&self, replay: ReplayId) -> Result<ReplayWaits, Error> {
        match self {
            Self::Here(redrive) => redrive.replay_waits(&redrive.find_replay(ReplayRef::Id(replay)).await?).await,
            Self::There(server) => server.get(&["replays", &replay.to_string(), "waits"]).read().await,
        }
    }

    /// See [`redrive::Redrive::awaited_by`].
    pub async fn awaited_by(&self, replay: &ReplayView) -> Result<Pins, Error> {
        match self {
            Self::Here(redrive) => redrive.awaited_by(replay).await,
            Self::There(_) => Ok(self.waits(replay.id).await?.awaited),
        }
    }

    /// See [`redrive::Redrive::unattended`].
    pub async fn unattended(&self, replay: &ReplayView) -> Result<BTreeSet<PipelineName>, Error> {
        match self {
            Self::Here(redrive) => redrive.unattended(replay).await,
            Self::There(_) => Ok(self.waits(replay.id).await?.unattended),
        }
    }

    /// The pipelines of a replay that have letters which have not come to their end.
    pub async fn left_in_replay(&self, id: ReplayId) -> Result<BTreeSet<PipelineName>, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().left_in_replay(id).await?),
            Self::There(_) => Ok(self.waits(id).await?.left),
        }
    }

    /// Letters that a replay's choice would find now and that died after it was made.
    pub async fn joined_since(&self, id: ReplayId) -> Result<u64, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().joined_since(id).await?),
            Self::There(_) => Ok(self.waits(id).await?.joined),
        }
    }

    /// See [`redrive::Redrive::pause_replay`]. A server knows by itself who it is by.
    pub async fn pause_replay(&self, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        match self {
            Self::Here(redrive) => redrive.pause_replay(which, by).await,
            Self::There(server) => server.post(&["replays", &which.to_string(), "pause"]).read().await,
        }
    }

    /// See [`redrive::Redrive::rate_replay`]. A server knows by itself who it is by.
    pub async fn rate_replay(
        &self,
        which: ReplayRef,
        per_second: Option<f64>,
        by: &Actor,
    ) -> Result<ReplayView, Error> {
        match self {
            Self::Here(redrive) => redrive.rate_replay(which, per_second, by, None).await,
            Self::There(server) => {
                let rate = per_second.map_or_else(|| "none".to_owned(), |rate| format!("{rate}/s"));
                server.post(&["replays", &which.to_string(), "rate"]).body(&json!({ "rate": rate }))?.read().await
            }
        }
    }

    /// See [`redrive::Redrive::plan_replay`]: what suits each letter where nothing is known of the pipelines.
    pub async fn plan_roughly(&self, selection: &Selection, force: bool, edits: &Input) -> Result<ReplayPlan, Error> {
        let supplied = edits.keys().cloned().collect();
        let wish = Wish { force, supplied, ..Wish::of(ReplayMode::Suited) };
        match self {
            Self::Here(redrive) => redrive.plan_replay(selection, &wish).await,
            // Anew, whatever the server's own pipelines can work from.
            Self::There(server) => {
                let asked = json!({ "force": force, "set": edits, "from": ReplayMode::Refetch });
                plan(server, selection, asked).await
            }
        }
    }

    /// See [`redrive::Redrive::plan_replay`]: with pipelines that are here, or, if none is, as a server has them. Gives also what letters
    /// would be worked on from.
    pub async fn plan_replay(
        &self,
        selection: &Selection,
        (mode, force): (Option<ReplayMode>, bool),
        pipelines: &[Pipeline],
    ) -> Result<(ReplayPlan, ReplayMode), Error> {
        let wish = wish(pipelines, mode, force, &Input::new())?;
        let plan = match self {
            Self::Here(redrive) => redrive.plan_replay(selection, &wish).await?,
            Self::There(server) => {
                plan(server, selection, json!({ "force": force, "from": mode, "runs": runs(pipelines, false) })).await?
            }
        };
        Ok((plan, wish.mode))
    }

    /// See [`redrive::Redrive::ask_replay`]. A server that is told of no pipelines takes its own.
    pub async fn ask_replay(&self, asked: AskedReplay, pipelines: &[Pipeline]) -> Result<StartedReplay, Error> {
        let server = match self {
            Self::Here(redrive) => return redrive.ask_replay(asked, pipelines).await,
            Self::There(server) => server,
        };
        let AskedReplay { selection, name, mode, recoverable, force_why, pacing, edits, by_name, .. } = asked;
        let force = force_why.is_some();
        let mut body = json!({
            "letters": selection, "name": name, "from": mode, "recoverable": recoverable, "force": force,
            "why": force_why, "set": edits, "retry": pacing.is_none(), "by_name": by_name, "runs": runs(pipelines, !edits.is_empty()),
        });
        if let Some(pacing) = pacing {
            body["ramp"] = json!(pacing.ramp);
            body["refail_max"] = json!(pacing.refail_max.to_string());
            body["rate"] = json!(pacing.per_second.map(|rate| format!("{rate}/s")));
        }
        match server.post(&["replays"]).body(&body)?.within(Some(LONG)).read::<Started>().await {
            Ok(Started { replay, plan, from, not_dead, all_taken }) => {
                let id = replay.map(|replay| replay.id);
                Ok(StartedReplay { id, plan, mode: from, not_dead, all_taken })
            }
            // Nothing was found at all: what is named is something else than a dead letter.
            Err(Error::Server { kind: ErrorKind::Missing, .. }) => {
                let plan = self.plan_roughly(&selection, force, &edits).await?;
                let not_dead = self.find_all_not_dead(&selection.ids).await?;
                let mode = mode.unwrap_or(ReplayMode::Suited);
                Ok(StartedReplay { id: None, plan, mode, all_taken: false, not_dead })
            }
            Err(error) => Err(error),
        }
    }

    /// See [`redrive::Redrive::find_resumable`].
    pub async fn find_resumable(&self, which: ReplayRef) -> Result<ReplayView, Error> {
        if let Self::Here(redrive) = self {
            return redrive.find_resumable(which).await;
        }
        let found = self.find_replay(which).await?;
        let open = match which {
            ReplayRef::Last => self.list_replays(OPEN_REPLAYS).await?.items,
            _ => Vec::new(),
        };
        Ok(meant(which, found, open, (ReplayChange::Resume, |state| !state.is_over()))?)
    }

    /// Lets a replay that was found go on; see [`redrive::Redrive::resume_replay`].
    pub async fn resume_replay(
        &self,
        found: &ReplayView,
        by: &Actor,
        pipelines: &[Pipeline],
    ) -> Result<(ReplayView, Pins), Error> {
        let server = match self {
            Self::Here(redrive) => return redrive.resume_replay(ReplayRef::Id(found.id), by, pipelines).await,
            Self::There(server) => server,
        };
        let asked = json!({ "runs": runs(pipelines, !found.edits.is_empty()) });
        let replay: ReplayView =
            server.post(&["replays", &found.id.to_string(), "resume"]).body(&asked)?.read().await?;
        let others = found.pins.clone().into_iter().filter(|(name, version)| replay.pins.get(name) != Some(version));
        let before = others.collect();
        Ok((replay, before))
    }

    /// Cancels a replay; see [`redrive::Redrive::cancel_replay`]. Who cancels one need not be able to work on it.
    pub async fn cancel_replay(&self, setting: &Setting, which: ReplayRef, by: &Actor) -> Result<ReplayView, Error> {
        let redrive = match self {
            Self::Here(redrive) => redrive,
            Self::There(server) => {
                let ask = server.post(&["replays", &which.to_string(), "cancel"]).within(Some(LONG));
                return ask.read().await;
            }
        };
        let found = redrive.find_cancellable(which).await?;
        let known = found.pipelines.into_iter().filter_map(|name| setting.pipeline(name, &Default::default()).ok());
        let known: Vec<Pipeline> = known.map(|(pipeline, _)| pipeline).collect();
        redrive.cancel_replay(ReplayRef::Id(found.id), by, &known).await
    }
}

/// What a server would replay.
async fn plan(server: &Server, selection: &Selection, mut asked: Value) -> Result<ReplayPlan, Error> {
    asked["letters"] = json!(selection);
    server.post(&["replays", "plan"]).body(&asked)?.within(Some(LONG)).read().await
}
