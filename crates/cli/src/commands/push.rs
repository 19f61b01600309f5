//! `redrive push`: enqueues a file.

use anyhow::Result;
use redrive::CancellationToken;
use redrive::config::Setting;
use redrive::tasks::{Feed, WhenFull};

use super::feed;
use crate::args::PushArgs;
use crate::exit::Exit;
use crate::output::print::{out, say};

pub async fn run(setting: &Setting, args: PushArgs) -> Result<Exit> {
    let named: Vec<_> = args.pipeline.into_iter().collect();
    let pipeline = setting.pipeline_name(&named, false)?;
    if !setting.config.pipeline.is_empty() && !setting.config.pipeline.contains_key(&pipeline) {
        say!("note: pipeline {pipeline} is not in the configuration: its jobs wait until a worker names it");
    }
    let tasks = feed::open(&args.tasks)?;
    let redrive = setting.redrive().await?;
    feed::check(&args.tasks, &tasks, &redrive)?;
    let target = setting.fixed_target(&pipeline);
    let queued_max = setting.policy(&pipeline).queued_max;
    let pushed =
        Feed { redrive, pipeline, queued_max, when_full: WhenFull::Refuse, target, stop: CancellationToken::new() };
    let broken = feed::say_broken(&tasks, |line| say!("{line}"));
    let fed = pushed.run(tasks, broken).await?;
    feed::unsaid(fed.broken).iter().for_each(|line| say!("{line}"));
    out!(
        "pipeline {}: {} accepted, {} known already, {} broken",
        pushed.pipeline,
        fed.accepted,
        fed.known(),
        fed.broken
    )?;
    Ok(if fed.broken > 0 { Exit::LinesRefused } else { Exit::Ok })
}
