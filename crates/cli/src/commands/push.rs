//! `redrive push`: enqueues a file.

use anyhow::Result;
use redrive::CancellationToken;
use redrive::config::Setting;

use super::feed::{Feed, WhenFull, check_strictly};
use crate::args::PushArgs;
use crate::exit::Exit;
use crate::output::print::{out, say};
use crate::tasks::Tasks;

pub async fn run(setting: &Setting, args: PushArgs) -> Result<Exit> {
    let named: Vec<_> = args.pipeline.into_iter().collect();
    let pipeline = setting.pipeline_name(&named, false)?;
    if !setting.config.pipeline.is_empty() && !setting.config.pipeline.contains_key(&pipeline) {
        say!("note: pipeline {pipeline} is not in the configuration: its jobs wait until a worker names it");
    }
    let tasks = Tasks::open(&args.tasks.file, args.tasks.format)?;
    let redrive = setting.redrive().await?;
    if args.tasks.strict {
        check_strictly(&tasks, &redrive)?;
    }
    let target = setting.fixed_target(&pipeline);
    let queued_max = setting.policy(&pipeline).queued_max;
    let feed =
        Feed { redrive, pipeline, queued_max, when_full: WhenFull::Refuse, target, stop: CancellationToken::new() };
    let fed = feed.run(tasks, |line| say!("{line}")).await?;
    out!(
        "pipeline {}: {} accepted, {} known already, {} broken",
        feed.pipeline,
        fed.accepted,
        fed.known(),
        fed.broken
    )?;
    Ok(if fed.broken > 0 { Exit::LinesRefused } else { Exit::Ok })
}
