//! Pages that worked.

use redrive_core::good::GoodPage;

use super::{Columns, json, time};

pub(crate) fn good_page<R: Columns>(row: &R) -> Result<GoodPage, R::Fault> {
    Ok(GoodPage {
        target: row.get(0)?,
        shape: row.get(1)?,
        url: row.get(2)?,
        payload: json(row, 3)?,
        at: time(row, 4)?,
        rules: row.get(5)?,
    })
}
