//! When tasks died of a cause: the hours of a week, with marks at what happened meanwhile.

use maud::{Markup, html};
use redrive::causes::{CauseMark, Happened};
use redrive::contract::{CauseHour, CauseView, CountEvents, EventCount, Span};
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

/// The first hour that is drawn.
const fn first(now: Timestamp) -> i64 {
    now.hour() - HOURS + 1
}

/// How tasks of its pipeline ended over the last week.
pub async fn section(app: &App, cause: &CauseView, marks: &[CauseMark], now: Timestamp) -> Result<Markup, Problem> {
    let (store, since) = (app.redrive().store(), Timestamp::from_millis(first(now) * 3_600_000));
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
    let of = |hour: i64, number: fn(&EventCount) -> i64| -> i64 {
        let own = counts.iter().filter(|count| count.pipeline == cause.pipeline && count.at.hour() == hour);
        own.map(number).sum()
    };
    let drawn: Vec<Column> = (first(now)..=now.hour())
        .map(|hour| {
            let at = Timestamp::from_millis(hour * 3_600_000);
            let here: i64 =
                hours.iter().filter(|one| one.hour.hour() == hour).map(|one| one.count - one.imported).sum();
            let others = (of(hour, EventCount::died_once) - here).max(0);
            let done = of(hour, EventCount::done_once).max(0);
            let label = hour.rem_euclid(24).eq(&0).then(|| date(at)[5..].to_owned());
            Column { title: moment(at), label, values: vec![here, others, done] }
        })
        .collect();
    let total: i64 = drawn.iter().map(|column| column.values[0]).sum();
    let series = [("died of this cause", Tone::Bad), ("died of another", Tone::Warn), ("done", Tone::Plain)];
    let series = series.map(|(name, tone)| Series { name, tone });
    let happened: Vec<Mark> = marks.iter().filter_map(|mark| drawn_at(mark, now)).collect();
    let busy: Vec<&Column> = drawn.iter().filter(|column| column.values.iter().any(|value| *value > 0)).collect();
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
    let at = usize::try_from(mark.at.hour() - first(now)).ok()?;
    let label = match &mark.what {
        Happened::Rules(version) => format!("rules {}", short(version)),
        Happened::Replay(_) => "replay".to_owned(),
        Happened::Resolved => "resolved".to_owned(),
    };
    Some(Mark { at, label })
}
