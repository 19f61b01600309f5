//! Alerts, with what sinks were told of them.

use super::{Columns, json, json_opt, time, time_opt};
use crate::contract::{AlertView, Posted};

/// An alert, and a sink with what it was told of it, if there is one.
type Told = (AlertView, Option<(String, Posted)>);

/// An alert with what people said about it, and what one sink was told of it last: columns version, alert, sink, number, `posted_at`,
/// tries, `ended_at`, error, and version and text of the care.
pub(crate) fn alert_told<R: Columns>(row: &R) -> Result<Told, R::Fault> {
    let mut view = AlertView::new(json(row, 1)?, row.get(0)?);
    if let Some(care) = json_opt(row, 9)? {
        (view.care, view.care_version) = (care, row.get(8)?);
    }
    let Some(sink) = row.get::<Option<String>>(2)? else { return Ok((view, None)) };
    let posted = Posted {
        number: row.get(3)?,
        posted_at: time(row, 4)?,
        tries: row.get(5)?,
        ended_at: time_opt(row, 6)?,
        error: row.get(7)?,
    };
    Ok((view, Some((sink, posted))))
}

/// Alerts, each once, with what all sinks were told: rows of one alert come after each other.
pub(crate) fn alerts_told(rows: impl IntoIterator<Item = Told>) -> Vec<AlertView> {
    let mut views: Vec<AlertView> = Vec::new();
    for (view, told) in rows {
        if views.last().is_none_or(|last| last.alert.key != view.alert.key) {
            views.push(view);
        }
        if let (Some(told), Some(last)) = (told, views.last_mut()) {
            last.posted.extend([told]);
        }
    }
    views
}
