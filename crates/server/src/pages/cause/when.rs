//! When tasks died of a cause: the hours of a week, with marks at what happened meanwhile.

use std::time::Duration;

use maud::{Markup, html};
use redrive::causes::{CauseMark, Happened};
use redrive::contract::{CauseHour, CauseView, CountEvents, EventCount, Span};
use redrive_core::counts::Event;
use redrive_core::time::Timestamp;

use super::history::short;
use crate::app::App;
use crate::look::charts::timeline::{Column, Mark, Series, marked_timeline};
use crate::look::figures::{count, date, moment};
use crate::look::tone::Tone;
use crate::pages::parts::{column, column_num, columns, section_head};
use crate::pages::problem::Problem;

/// Hours that are drawn.
const HOURS: i64 = 7 * 24;

/// The beginning of what is drawn.
pub fn since(now: Timestamp) -> Timestamp {
    now - Duration::from_secs(HOURS.unsigned_abs() * 3_600)
}

/// How tasks of its pipeline ended over the last week.
pub async fn section(app: &App, cause: &CauseView, marks: &[CauseMark], now: Timestamp) -> Result<Markup, Problem> {
    let (store, since) = (app.redrive().store(), since(now));
    let hours = store.cause_hours(vec![cause.id.clone()], since).await?;
    let counts = store.counts(CountEvents::since(since, Span::Hour).of(cause.pipeline.clone())).await?;
    Ok(chart(cause, (&hours, &counts), marks, now))
}

fn chart(
    cause: &CauseView,
    (hours, counts): (&[CauseHour], &[EventCount]),
    marks: &[CauseMark],
    now: Timestamp,
) -> Markup {
    let of = |hour: i64, event: Event| -> i64 {
        let own = counts.iter().filter(|count| count.pipeline == cause.pipeline && count.at.hour() == hour);
        own.filter(|count| count.event == event).map(|count| count.count).sum()
    };
    let drawn: Vec<Column> = (now.hour() - HOURS + 1..=now.hour())
        .map(|hour| {
            let at = Timestamp::from_millis(hour * 3_600_000);
            let here: i64 =
                hours.iter().filter(|one| one.hour.hour() == hour).map(|one| one.count - one.imported).sum();
            let others = (of(hour, Event::Buried) - here).max(0);
            let done = (of(hour, Event::Done) - of(hour, Event::Recovered)).max(0);
            let label = hour.rem_euclid(24).eq(&0).then(|| date(at)[5..].to_owned());
            Column { title: moment(at), label, values: vec![here, others, done] }
        })
        .collect();
    let total: i64 = hours.iter().map(|one| one.count - one.imported).sum();
    let series = [("died of this cause", Tone::Bad), ("died of another", Tone::Warn), ("done", Tone::Plain)];
    let series = series.map(|(name, tone)| Series { name, tone });
    let happened: Vec<Mark> = marks.iter().filter_map(|mark| drawn_at(mark, now)).collect();
    let busy: Vec<&Column> = drawn.iter().filter(|column| column.values[0] > 0).collect();
    html! {
        section aria-labelledby="when" {
            (section_head("when", "When", &format!("Tasks of {} per hour, 7 days; {} died of this cause", cause.pipeline, count(total))))
            figure #when-chart {
                (marked_timeline("Tasks that died of this cause, of another, and that were done, per hour", &series, &drawn, &happened))
            }
            details.as-table {
                summary { "As a table" }
                table role="table" {
                    (columns(&[
                        column("Hour (UTC)"), column_num("Died of this cause"), column_num("Died of another"),
                        column_num("Done"),
                    ]))
                    tbody role="rowgroup" {
                        @for column in busy {
                            tr role="row" {
                                th role="rowheader" scope="row" { (column.title) }
                                @for value in &column.values { td.num role="cell" { (count(*value)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What happened, as a mark at its hour.
fn drawn_at(mark: &CauseMark, now: Timestamp) -> Option<Mark> {
    let at = usize::try_from(mark.at.hour() - (now.hour() - HOURS + 1)).ok()?;
    let label = match &mark.what {
        Happened::Rules(version) => format!("rules {}", short(version)),
        Happened::Replay(_) => "replay".to_owned(),
        Happened::Resolved => "resolved".to_owned(),
    };
    Some(Mark { at, label })
}
