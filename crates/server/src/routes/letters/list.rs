//! `GET /letters`

use axum::Json;
use axum::extract::State;
use redrive::contract::{DeadFilter, ListDead, Page};
use redrive::dead::SearchAsked;
use redrive_core::dead::{DeadLetter, LetterSort};
use utoipa::IntoParams;

use super::filter::Filter;
use crate::access::Caller;
use crate::app::App;
use crate::asked::Fields;
use crate::error::ApiError;
use crate::page::{List, Listed};

/// How letters are listed.
#[derive(IntoParams)]
#[allow(dead_code, reason = "only its description is of use")]
pub struct With {
    /// Each with all its failures.
    failures: Option<bool>,
    /// Which come first, by when they died: `newest` (if left out) or `oldest`.
    sort: Option<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    mut fields: Fields,
) -> Result<Json<Listed<DeadLetter>>, ApiError> {
    let sort = sort_of(fields.take("sort").as_deref())?;
    let with_failures = match fields.take("failures").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(other) => return Err(ApiError::invalid("failures", format!("{other:?} is neither true nor false"))),
    };
    Ok(Json(read(&app, &caller, fields.list()?, (sort, with_failures)).await?))
}

/// The order that somebody asks for.
pub fn sort_of(name: Option<&str>) -> Result<LetterSort, ApiError> {
    let named = name.filter(|name| !name.is_empty());
    named.map_or(Ok(LetterSort::default()), str::parse).map_err(|why| ApiError::invalid("sort", why))
}

/// A page of letters, as far as somebody may see them.
pub async fn read(
    app: &App,
    caller: &Caller,
    List { asked, limit, cursor }: List<Filter>,
    (sort, with_failures): (LetterSort, bool),
) -> Result<Listed<DeadLetter>, ApiError> {
    caller.check_each(&asked.pipeline)?;
    let filter = DeadFilter { within: caller.within(), ..asked.dead(app)? };
    let mut page = match filter.text.is_some() {
        true => {
            let within = app.options().patience.letters;
            search(app, SearchAsked { filter, sort, limit, cursor, within }, with_failures).await?
        }
        false => {
            let params = ListDead { filter, sort, limit, cursor, with_failures };
            app.redrive().list_dead(params).await?
        }
    };
    page.items.iter_mut().for_each(|letter| caller.strip_letter(letter));
    Ok(Listed::of(page))
}

/// A page of letters with a text.
async fn search(app: &App, asked: SearchAsked, with_failures: bool) -> Result<Page<DeadLetter>, ApiError> {
    let found = app.redrive().search_letters(asked).await?;
    let mut items = found.letters;
    if with_failures {
        for letter in &mut items {
            if let Some(whole) = app.redrive().get_dead(letter.id).await? {
                *letter = whole;
            }
        }
    }
    Ok(Page { items, next: found.next })
}
