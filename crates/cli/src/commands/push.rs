//! `redrive push`: enqueues tasks.

use anyhow::Result;
use redrive::CancellationToken;
use redrive::tasks::Feed;

use super::{feed, signals};
use crate::args::PushArgs;
use crate::exit::Exit;
use crate::output::print::{out, say};
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: PushArgs) -> Result<Exit> {
    let named: Vec<_> = args.pipeline.into_iter().collect();
    let pipeline = setting.pipeline_name(&named, false)?;
    if args.tasks.dry_run {
        return feed::dry_run(setting, pipeline, &args.tasks, false).await;
    }
    if !setting.config.pipeline.is_empty() && !setting.config.pipeline.contains_key(&pipeline) {
        say!("note: pipeline {pipeline} is not in the configuration: its tasks wait until a worker names it");
    }
    let tasks = feed::open(&args.tasks)?;
    let redrive = setting.desk_or_new().await?;
    let naming = feed::naming(setting, &redrive, &pipeline, &args.tasks, &tasks).await?;
    feed::check(&args.tasks, &tasks, &redrive, &naming)?;
    let stop = CancellationToken::new();
    // What had come of a stream is still enqueued.
    let signalled = signals::watch(stop.clone(), CancellationToken::new(), |_| ());
    let pushed = Feed {
        bounds: setting.policy(&pipeline).bounds(),
        target: setting.fixed_target(&pipeline),
        traceparent: args.traceparent,
        naming,
        limit: args.tasks.limit,
        may_be_changed: args.tasks.yes,
        ..Feed::new(redrive.intake(), pipeline, stop)
    };
    let broken = feed::say_broken(&tasks, |line| say!("{line}"));
    let fed = pushed.run(tasks, broken).await?;
    feed::unsaid(fed.broken).iter().for_each(|line| say!("{line}"));
    let round = pushed.naming.round.as_ref().map(|round| format!(", round {round}")).unwrap_or_default();
    out!(
        "pipeline {}{round}: {} accepted, {} known already, {} broken",
        pushed.pipeline,
        fed.accepted,
        fed.known(),
        fed.broken
    )?;
    if let Some(unfinished) = feed::unfinished(&fed) {
        say!("left out: {unfinished}");
    }
    if let Some(limit) = feed::limit(&fed) {
        say!("limit reached: {limit}");
    }
    Ok(match (signalled.is_cancelled() && !fed.complete, feed::lines_refused(&fed)) {
        (true, _) => Exit::Interrupted,
        (false, false) => Exit::Ok,
        (false, true) => Exit::LinesRefused,
    })
}
