//! Targets that are waited for, and what people do about it.

pub(crate) mod list;
pub(crate) mod turn;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    let turned = |route: Route| route.takes::<turn::Asked>().gives::<turn::Answer>();
    vec![
        Route::get("/breakers", list::run, "List the targets that are waited for")
            .query::<list::Asked>()
            .lists("BreakerDetail"),
        turned(Route::post("/breakers/close", turn::close, "Let the jobs of a target go on now")),
        turned(Route::post("/breakers/hold", turn::hold, "Have the jobs of a target wait, whatever it does")),
        turned(Route::post("/breakers/probe", turn::probe, "Let one job of a target go now, to see how it is")),
    ]
}
