//! What becomes of each letter of a small replay, said as it comes.

use std::collections::BTreeSet;

use anyhow::Result;
use redrive::contract::{ListReplayLetters, ReplayLetter, ReplayView};
use redrive_client::Desk;
use redrive_core::ids::{JobId, ReplayId};
use redrive_core::replays::{HANDFUL, LetterState};

use super::super::breaker;
use crate::output::foreign::cut;
use crate::output::paint::{BAD, GOOD, WAITING, paint};
use crate::output::progress::Counter;

/// The longest message that is shown whole, in columns.
const MESSAGE_COLUMNS: usize = 200;

/// The letters of a replay of which it was said what became of them.
pub struct Letters {
    replay: ReplayId,
    said: BTreeSet<JobId>,
    /// Whether it was said what they wait for.
    told_why: bool,
}

impl Letters {
    /// Nothing was said yet.
    pub fn of(replay: ReplayId) -> Self {
        Self { replay, said: BTreeSet::new(), told_why: false }
    }

    /// Says what has become of letters since the last look.
    pub async fn look(&mut self, redrive: &Desk, counter: &Counter) -> Result<()> {
        let limit = u32::try_from(HANDFUL).unwrap_or(u32::MAX);
        let params = ListReplayLetters { id: self.replay, state: None, limit, cursor: None };
        for letter in redrive.list_replay_letters(params).await?.items {
            if letter.ended_at.is_some() && self.said.insert(letter.id) {
                counter.say(&told(redrive, &letter).await?);
            }
        }
        Ok(())
    }

    /// Says once which targets are waited for.
    pub async fn tell_why(&mut self, redrive: &Desk, replay: &ReplayView, counter: &Counter) -> Result<()> {
        if self.told_why || replay.progress.running == 0 {
            return Ok(());
        }
        let mut breakers = breaker::list(redrive, None).await?;
        breakers.retain(|breaker| breaker.held > 0 && replay.pipelines.contains(&breaker.pipeline));
        for breaker in &breakers {
            let (target, until) = (cut(&breaker.target, 60), breaker.breaker.open_until);
            counter.say(&format!("{} {target} is not asked before {until}", paint(WAITING, "waits:")));
        }
        self.told_why = !breakers.is_empty();
        Ok(())
    }
}

/// What became of a letter, in words.
async fn told(redrive: &Desk, letter: &ReplayLetter) -> Result<String> {
    let name = letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string());
    Ok(match letter.state {
        LetterState::Recovered => format!("{name}  {}", paint(GOOD, "recovered")),
        LetterState::Failed => {
            let why = redrive.get_dead(letter.id).await?.map(|dead| {
                let verdict = dead.verdict.as_ref().map(|verdict| format!("  ({verdict})")).unwrap_or_default();
                format!(": {}: {}{verdict}", dead.reason, cut(&dead.message, MESSAGE_COLUMNS))
            });
            format!("{name}  {}{}", paint(BAD, "died again"), why.unwrap_or_default())
        }
        LetterState::Gone => format!("{name}  not sent: it was discarded meanwhile, or --set does not fit it"),
        other => format!("{name}  {other}"),
    })
}
