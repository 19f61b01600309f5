//! Activity.

use redrive_core::actors::{Actor, Via};

use super::{Columns, json, time};
use crate::contract::ActivityView;

pub(crate) fn activity_view<R: Columns>(row: &R) -> Result<ActivityView, R::Fault> {
    let via = match row.text(3)? {
        "cli" => Via::Cli,
        "web" => Via::Web,
        "automatic" => Via::Automatic,
        _ => Via::Api,
    };
    Ok(ActivityView {
        at: time(row, 1)?,
        by: Actor::new(row.get::<String>(2)?, via),
        verb: row.get(4)?,
        object: row.get(5)?,
        detail: json(row, 6)?,
    })
}
