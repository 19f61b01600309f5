//! What people do about alerts: who looks after one, who has seen it, and until when nobody is told of it.
//!
//! An acknowledgement is about what was seen: an alert that has doubled since, or that fired anew, is not acknowledged any more. A
//! snooze is about the alert whatever becomes of it meanwhile, so that one that comes and goes does not wake anybody before its time.

use serde::{Deserialize, Serialize};

use super::Alert;
use crate::actors::Actor;
use crate::time::Timestamp;

/// What people said about an alert.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertCare {
    /// Who looks after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Who has seen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
    /// Until when nobody is told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed: Option<Snoozed>,
}

/// Somebody has seen an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Who.
    pub by: Actor,
    /// When.
    pub at: Timestamp,
    /// When the alert had fired that was seen.
    pub since: Timestamp,
    /// How often there had been something to tell of it.
    pub tellings: u32,
}

/// Nobody is told of an alert for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snoozed {
    /// Who wants that.
    pub by: Actor,
    /// Since when.
    pub at: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// Why, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What can be done about an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CareChange {
    /// Says that it was seen.
    Acknowledge,
    /// Takes that back.
    Unacknowledge,
    /// Has nobody told of it until a time.
    Snooze {
        /// Until when.
        until: Timestamp,
        /// Why, if that is said.
        why: Option<String>,
    },
    /// Has people told of it again.
    Wake,
    /// Says who looks after it, or that nobody does.
    Assign(Option<String>),
}

impl CareChange {
    /// What it is called in the record of what people did, in requests and in commands.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Acknowledge => "acknowledge",
            Self::Unacknowledge => "unacknowledge",
            Self::Snooze { .. } => "snooze",
            Self::Wake => "wake",
            Self::Assign(_) => "assign",
        }
    }
}

/// Why something cannot be done about an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum CareRefusal {
    /// It does not fire any more.
    #[error("it is over: there is nothing to acknowledge")]
    Over,
    /// Nobody has acknowledged it.
    #[error("nobody has acknowledged it")]
    NotAcknowledged,
    /// It is not snoozed.
    #[error("it is not snoozed")]
    NotSnoozed,
    /// It is to be snoozed until a time that is over.
    #[error("{0}, until when it is to be snoozed, is over")]
    Past(Timestamp),
}

impl AlertCare {
    /// Whether nothing was said.
    pub const fn is_empty(&self) -> bool {
        self.owner.is_none() && self.acknowledged.is_none() && self.snoozed.is_none()
    }

    /// Who has seen an alert as it is: this incident of it, and not only before it doubled.
    pub fn acknowledged_of(&self, alert: &Alert) -> Option<&Acknowledged> {
        self.acknowledged.as_ref().filter(|seen| seen.since == alert.since && seen.tellings >= alert.tellings)
    }

    /// The snooze that holds now.
    pub fn snoozed_at(&self, now: Timestamp) -> Option<&Snoozed> {
        self.snoozed.as_ref().filter(|snoozed| now < snoozed.until)
    }

    /// What is said about an alert after somebody did something about it.
    pub fn changed(&self, change: &CareChange, alert: &Alert, by: &Actor, now: Timestamp) -> Result<Self, CareRefusal> {
        let mut next = self.clone();
        match change {
            CareChange::Acknowledge if !alert.is_firing() => return Err(CareRefusal::Over),
            CareChange::Acknowledge => {
                // Who was the first to see it stays known.
                if self.acknowledged_of(alert).is_none() {
                    let (since, tellings) = (alert.since, alert.tellings);
                    next.acknowledged = Some(Acknowledged { by: by.clone(), at: now, since, tellings });
                }
            }
            CareChange::Unacknowledge => {
                next.acknowledged.take().ok_or(CareRefusal::NotAcknowledged)?;
            }
            CareChange::Snooze { until, .. } if *until <= now => return Err(CareRefusal::Past(*until)),
            CareChange::Snooze { until, why } => {
                next.snoozed = Some(Snoozed { by: by.clone(), at: now, until: *until, why: why.clone() });
            }
            CareChange::Wake => {
                self.snoozed_at(now).ok_or(CareRefusal::NotSnoozed)?;
                next.snoozed = None;
            }
            CareChange::Assign(owner) => next.owner.clone_from(owner),
        }
        Ok(next)
    }

    /// What is said about an alert whose snooze is over, and the alert as it is then: told again, if it still fires and somebody was
    /// told of it as it is. Nothing while it is snoozed, and if it was not.
    pub fn woken(&self, alert: &Alert, was_told: bool, now: Timestamp) -> Option<(Self, Alert)> {
        if self.snoozed.is_none() || self.snoozed_at(now).is_some() {
            return None;
        }
        let again = alert.is_firing() && was_told;
        let tellings = alert.tellings + u32::from(again);
        let woken = if again { Some(tellings) } else { alert.woken };
        Some((Self { snoozed: None, ..self.clone() }, Alert { tellings, woken, ..alert.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::actors::Via;
    use crate::alerts::{AlertKey, Condition, Finding, NoticeKind, due_notice};

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn alert(since: i64, tellings: u32) -> Alert {
        let (summary, look) = ("it is bad".to_owned(), "redrive status".to_owned());
        Alert {
            key: AlertKey::new(Condition::Disk, None, None),
            condition: Condition::Disk,
            pipeline: None,
            since: at(since),
            seen_at: at(since),
            seen_by: Default::default(),
            tellings,
            woken: None,
            told_level: 1.0,
            finding: Finding { level: 1.0, surely: 1.0, summary, look, numbers: Map::new() },
            baseline: None,
            over_at: None,
            why_over: None,
        }
    }

    fn ada() -> Actor {
        Actor::new("ada", Via::Web)
    }

    #[test]
    fn an_acknowledgement_is_of_what_was_seen() {
        let (ada, bob) = (ada(), Actor::new("bob", Via::Cli));
        let fired = alert(10, 1);
        let seen = AlertCare::default().changed(&CareChange::Acknowledge, &fired, &ada, at(20)).expect("seen");
        assert_eq!(seen.acknowledged_of(&fired).map(|seen| seen.by.name.as_str()), Some("ada"));
        let twice = seen.changed(&CareChange::Acknowledge, &fired, &bob, at(30)).expect("seen");
        assert_eq!(twice, seen, "the first stays known");
        assert_eq!(seen.acknowledged_of(&alert(10, 2)), None, "it has doubled");
        assert_eq!(seen.acknowledged_of(&alert(99, 1)), None, "it fired anew");
        let again = seen.changed(&CareChange::Acknowledge, &alert(10, 2), &bob, at(40)).expect("seen");
        assert_eq!(again.acknowledged_of(&alert(10, 2)).map(|seen| seen.by.name.as_str()), Some("bob"));
        let over = Alert { over_at: Some(at(50)), ..fired.clone() };
        assert_eq!(seen.changed(&CareChange::Acknowledge, &over, &ada, at(60)), Err(CareRefusal::Over));
        let back = seen.changed(&CareChange::Unacknowledge, &fired, &ada, at(60)).expect("taken back");
        assert!(back.is_empty());
        let refused = back.changed(&CareChange::Unacknowledge, &fired, &ada, at(60));
        assert_eq!(refused, Err(CareRefusal::NotAcknowledged));
    }

    #[test]
    fn a_snooze_ends_by_itself_or_by_hand() {
        let (ada, fired) = (ada(), alert(10, 1));
        let snooze = CareChange::Snooze { until: at(100), why: Some("known".into()) };
        let snoozed = AlertCare::default().changed(&snooze, &fired, &ada, at(20)).expect("snoozed");
        assert!(snoozed.snoozed_at(at(99)).is_some() && snoozed.snoozed_at(at(100)).is_none());
        assert!(snoozed.snoozed_at(at(50)).is_some_and(|snoozed| snoozed.why.as_deref() == Some("known")));
        let late = AlertCare::default().changed(&snooze, &fired, &ada, at(100));
        assert_eq!(late, Err(CareRefusal::Past(at(100))));
        assert!(snoozed.changed(&CareChange::Wake, &fired, &ada, at(50)).expect("woken").is_empty());
        assert_eq!(snoozed.changed(&CareChange::Wake, &fired, &ada, at(100)), Err(CareRefusal::NotSnoozed));
    }

    #[test]
    fn who_was_told_before_the_snooze_is_told_after_it_and_nobody_else_twice() {
        let (ada, fired) = (ada(), alert(10, 1));
        let snooze = CareChange::Snooze { until: at(100), why: None };
        let snoozed = AlertCare::default().changed(&snooze, &fired, &ada, at(20)).expect("snoozed");
        assert_eq!(snoozed.woken(&fired, true, at(99)), None);
        let (care, again) = snoozed.woken(&fired, true, at(100)).expect("its time is over");
        assert!(care.is_empty());
        let notice = due_notice(&again, Some(1)).expect("told again");
        assert_eq!((notice.kind, notice.number), (NoticeKind::Fired, 2), "it fires, and has not doubled");
        assert_eq!(care.woken(&again, true, at(160)), None, "once");
        let (_, same) = snoozed.woken(&fired, false, at(100)).expect("its time is over");
        assert_eq!(same, fired, "nobody was told of it as it is: they are anyway");
        let over = Alert { over_at: Some(at(90)), ..fired };
        assert_eq!(snoozed.woken(&over, true, at(100)).map(|(_, alert)| alert), Some(over));
    }

    #[test]
    fn an_owner_stays_until_another_is_named() {
        let (ada, fired) = (ada(), alert(10, 1));
        let assign = |care: &AlertCare, owner: Option<&str>| {
            care.changed(&CareChange::Assign(owner.map(str::to_owned)), &fired, &ada, at(20)).expect("assigned")
        };
        let owned = assign(&AlertCare::default(), Some("bob"));
        assert_eq!(owned.owner.as_deref(), Some("bob"));
        assert!(assign(&owned, None).is_empty());
    }
}
