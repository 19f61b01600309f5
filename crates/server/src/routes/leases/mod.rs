//! Jobs for workers that live elsewhere: leasing them, keeping leases up, settling. A restart of the server loses no lease: all that
//! is known of one is in the store.

mod evidence;
mod id;
mod keep;
mod lease;
mod settle;
mod wanted;

use redrive_core::tokens::Role;

use crate::route::Route;

/// Its routes.
pub fn routes() -> Vec<Route> {
    let worker = |route: Route| route.needs(Role::Worker).answered_anew();
    vec![
        worker(Route::post(
            "/leases",
            lease::run,
            "Lease jobs, letters of replays, or letters of a try; waits for some if asked to",
        ))
        .takes::<lease::Asked>()
        .gives::<lease::Answer>(),
        worker(Route::post(
            "/leases/give-up",
            keep::give_up,
            "Make letters of jobs that wait for a target that stays away, for a worker that waits for it no longer",
        ))
        .takes::<keep::WaitedEnough>()
        .gives::<keep::GivenUp>(),
        worker(Route::post("/leases/start", keep::start, "Note that jobs begin to run"))
            .takes::<keep::Begun>()
            .gives::<keep::Noted>(),
        worker(Route::post(
            "/leases/died",
            keep::died,
            "Say that the process of a worker died with its leases: what it had begun is suspected, and runs alone next",
        ))
        .takes::<keep::Died>()
        .gives::<keep::Noted>(),
        worker(Route::post(
            "/leases/renew",
            keep::renew,
            "Extend leases; the jobs of those that are lost are to be left",
        ))
        .takes::<keep::Asked>()
        .gives::<keep::Answer>(),
        worker(Route::post(
            "/leases/progress",
            keep::progress,
            "Note how far an attempt got, for who runs the job next",
        ))
        .takes::<keep::Progress>()
        .gives::<keep::Kept>(),
        worker(Route::post(
            "/leases/settle",
            settle::run,
            "Settle jobs, or say what letters came to in a try: done, failed, crashed, unknown or returned",
        ))
        .takes::<settle::Asked>()
        .gives::<settle::Answer>(),
    ]
}
