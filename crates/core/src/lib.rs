//! Redrive's types and pure decisions.
//!
//! Nothing in here touches an async runtime, SQL, HTTP, the clock or a source of randomness: time and chance are passed in,
//! so every decision can be tested by calling a function.
//!
//! - [`alerts`]: which conditions are told, and when they are over
//! - [`ids`]: what jobs, workers, leases and pipelines are called
//! - [`actors`]: who did something, and by which way
//! - [`time`]: instants, to the millisecond
//! - [`state`]: the five states of a job and the table of moves between them
//! - [`tasks`]: who a task is, before it is a job; [`rounds`]: repetitions of the same tasks
//! - [`results`]: when a result is none
//! - [`jobs`]: a job, before and after it was accepted, and its lease
//! - [`failures`]: what went wrong in an attempt, and the closed list of reasons
//! - [`rules`]: from what went wrong to a reason, a disposition and a gate
//! - [`retry`]: how long to wait before the next attempt; [`retrying`]: failures of jobs that wait for one, by cause
//! - [`policy`]: everything a pipeline decides by
//! - [`definitions`]: versions of what a pipeline is
//! - [`settlements`]: how an attempt ends
//! - [`clock`]: what to make of a clock that jumps
//! - [`crashes`]: who is to blame when a process dies
//! - [`breakers`]: when the jobs of a failing target wait
//! - [`holds`]: pipelines that cannot work for now
//! - [`standstill`]: when waiting is in vain
//! - [`outages`]: for how long a store that does not answer is waited for
//! - [`dead`]: dead letters and their gates
//! - [`fingerprint`]: what a failure is recognised by
//! - [`causes`]: groups of dead letters with one root cause, and where they stand
//! - [`replays`]: sending dead letters through their pipeline again, and at what pace
//! - [`ledger`]: the counters that must add up
//! - [`copies`]: whether a store may be copied to another
//! - [`counts`]: what is counted over time, each job once
//! - [`history`]: when what is known of a job is forgotten
//! - [`paths`]: names in paths of addresses
//! - [`payloads`]: what is kept of a response, and its address
//! - [`good`]: pages that worked, to be put beside those that broke
//! - [`diff`]: what two lists of lines do not have in common
//! - [`facets`]: what letters of a cause have in common, and what is different about them
//! - [`traffic`]: what is counted about attempts
//! - [`egress`]: which addresses may be connected to
//! - [`hand_on`]: jobs that come into being with the end of another
//! - [`hidden`]: characters that are obeyed instead of seen
//! - [`outcomes`]: what programs that run their jobs themselves count of them
//! - [`tokens`]: by which a server knows who asks, and what they may do; [`versions`]: which of them understand each other
//! - [`secrets`]: what must not get out, and how it is masked
//! - `schema`: JSON schemas of values that are written as text
//! - [`servers`]: what is known of a database server, and what of it hurts

pub mod actors;
pub mod alerts;
pub mod breakers;
pub mod causes;
pub mod clock;
pub mod copies;
pub mod counts;
pub mod crashes;
pub mod dead;
pub mod definitions;
pub mod diff;
pub mod egress;
pub mod facets;
pub mod failures;
pub mod fingerprint;
pub mod good;
pub mod hand_on;
pub mod hidden;
pub mod history;
pub mod holds;
pub mod ids;
pub mod jobs;
pub mod leader;
pub mod ledger;
pub mod outages;
pub mod outcomes;
pub mod paths;
pub mod payloads;
pub mod pipelines;
pub mod policy;
pub mod proxies;
pub mod replays;
pub mod results;
pub mod retry;
pub mod retrying;
pub mod rounds;
pub mod rules;
mod schema;
pub mod secrets;
pub mod seen;
pub mod servers;
pub mod settlements;
pub mod standstill;
pub mod state;
pub mod tasks;
pub mod time;
pub mod tokens;
pub mod traffic;
pub mod versions;
pub mod workers;

#[doc(hidden)]
pub use schemars;
