//! The suite that every backend runs unchanged: what a store must hold to, one file per noun.
//!
//! A backend's test file names a function that makes a fresh [`Fixture`] and calls [`conformance_tests!`](crate::conformance_tests).

use async_trait::async_trait;

use self::script::Shared;

pub mod activity;
pub mod alerts;
pub mod answers;
pub mod breakers;
pub mod causes;
pub mod changes;
pub mod chunks;
pub mod clock;
pub mod copies;
pub mod counts;
pub mod dead;
pub mod decorators;
pub mod definitions;
pub mod facets;
pub mod good;
pub mod handles;
pub mod histories;
pub mod history;
pub mod jobs;
pub mod leader;
pub mod leases;
pub mod ledger;
pub mod load;
pub mod outcomes;
pub mod payloads;
pub mod pipelines;
pub mod recount;
pub mod replays;
pub mod reported;
pub mod results;
pub mod retrying;
pub mod rounds;
pub mod script;
pub mod sessions;
pub mod tasks;
pub mod tokens;
pub mod traffic;
pub mod tries;
pub mod uploads;
pub mod workers;

/// What a backend brings to be judged: stores that are made for one case.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// One more handle to the store of this case, as another process would have it. It is empty at first.
    async fn handle(&self) -> Shared;

    /// Another store, which is empty.
    async fn other(&self) -> Shared;
}

/// Makes one test per case of the suite. `$make` is a function that gives a fresh [`Fixture`]. After each case the suite counts
/// the jobs itself and compares the ledger with that.
#[macro_export]
macro_rules! conformance_tests {
    ($make:ident) => {
        $crate::conformance_tests!(@cases $make;
            chunks: [every_bounded_verb_stops_at_its_limit]
            jobs: [accepts_and_counts, a_key_is_accepted_once, keys_belong_to_a_pipeline, keys_belong_to_a_round,
                   a_number_never_repeats, a_job_keeps_its_number_round_and_origin, a_job_is_found_by_number_and_ending,
                   digits_may_be_a_number_and_an_ending, a_full_queue_refuses_all, too_many_letters_refuse_new_jobs_alone,
                   lists_filter_and_page, shows_jobs_in_every_state, cancels_queued_and_leased_jobs,
                   a_huge_input_comes_back_whole, a_bad_cursor_fails_only_its_caller,
                   a_job_that_is_done_hands_on_others]
            leases: [oldest_due_first_and_only_once, nothing_before_it_is_due, done_is_final, a_retry_waits_and_counts,
                     burying_keeps_every_failure, a_stale_settlement_moves_nothing, an_expired_lease_is_lost,
                     extending_keeps_a_lease, extending_tells_a_lost_lease_from_a_new_one, a_started_job_is_told_from_a_waiting_one, epochs_grow,
                     progress_survives_a_lost_lease, the_proxies_a_job_tried_are_told,
                     a_resent_lease_is_the_same, a_lease_is_enough_to_find_its_job, results_are_claimed_by_one_process,
                     a_settlement_is_answered_alike_when_it_is_sent_again,
                     jobs_are_leased_by_group, a_worker_with_a_suspect_is_told_from_others,
                     the_outlook_tells_all_that_is_asked_before_a_lease]
            dead: [lists_filter, lists_page_by_cursor, a_search_stops_and_goes_on, discards_with_a_record, discards_by_rule_with_a_record, expires_the_oldest,
                   importing_twice_adds_nothing, a_task_stays_with_its_letter, hostile_texts_stop_nobody,
                   a_known_key_is_not_taken_in_again]
            activity: [what_people_do_is_noted, what_ends_by_itself_is_noted, compacting_is_noted, activity_is_listed_in_pages]
            alerts: [an_alert_is_changed_on_what_it_was, a_notice_is_posted_once_and_taken_in_order,
                     a_notice_whose_taker_is_gone_is_taken_again, a_failing_sink_is_left_alone_and_seen,
                     what_was_over_long_ago_is_forgotten, what_is_watched_is_told,
                     what_is_said_about_an_alert_is_kept, who_looks_at_alerts_hears_of_them, nobody_is_told_of_what_is_snoozed, what_became_of_a_notice_is_seen]
            counts: [minutes_and_hours_are_counted, a_job_dies_once, folding_changes_no_sum, totals_only_grow]
            definitions: [definitions_are_kept_by_version, definitions_of_workers_elsewhere_are_kept, files_of_results_are_kept_by_version, commands_are_kept_with_every_folder_that_they_ran_in, letters_record_the_version_they_were_tried_with,
                          a_pinned_replay_waits_for_its_version]
            facets: [both_sides_are_counted_once, values_have_a_bound, values_of_an_hour_have_a_bound, what_can_be_worked_on_from_saved_is_counted]
            good: [the_last_page_of_each_shape_is_kept, a_cause_holds_on_to_the_page_that_worked,
                   a_resolved_cause_lets_go_of_its_page, pages_have_a_bound]
            history: [what_is_forgotten_is_counted, what_is_open_is_not_forgotten, a_key_that_is_met_again_is_kept,
                      receipts_are_looked_at_once_a_day, a_settlement_that_came_after_all_was_forgotten_goes,
                      a_target_is_known_as_long_as_its_letters_are_dead, only_who_leads_goes_on_forgetting]
            retrying: [last_failures_of_queued_jobs_are_read, failures_are_found_behind_any_number_of_fresh_jobs]
            rounds: [a_round_has_a_ledger_of_its_own, a_round_of_which_nothing_is_known_is_forgotten, a_round_begins_once]
            results: [a_result_is_kept_with_its_settlement, results_are_listed_in_pages,
                      old_results_and_those_above_the_limit_are_forgotten]
            tasks: [asking_who_is_known_changes_nothing]
            tokens: [a_token_is_kept_and_revoked, the_first_token_is_made_once,
                     a_new_token_inherits_nothing_of_a_revoked_one]
            answers: [a_request_is_held_by_one_process, the_oldest_answers_are_shortened, a_request_without_an_answer_is_begun_once, the_first_answer_stays]
            sessions: [a_session_holds_until_it_ends, a_token_has_no_more_sessions_than_it_may, sessions_that_are_over_are_forgotten]
            uploads: [it_is_known_who_brought_an_upload_and_who_uses_it]
            reported: [each_report_is_counted_once, late_reports_are_counted_when_they_died, a_report_meets_jobs_in_every_state, a_history_has_an_end]
            outcomes: [outcomes_are_counted_once, late_outcomes_are_counted_at_their_own_time]
            ledger: [a_replayed_letter_counts_as_recovered, tidying_up_shows_nowhere]
            changes: [who_listens_hears_what_it_is_about, looking_is_no_change]
            causes: [letters_are_grouped_as_they_die, causes_are_listed_in_an_order, discarding_is_counted, people_have_their_say, what_comes_back_is_regressed, a_merge_holds_for_the_future,
                     a_split_holds_for_the_future, a_part_of_a_part_is_split_off, a_merge_taken_back,
                     an_old_letter_regresses_nothing, what_is_recognised_is_not_written, a_sudden_rise_escalates,
                     a_split_merged_back_leaves_nothing_behind, what_is_settled_by_older_rules_is_resolved_anew,
                     a_change_that_was_overtaken_writes_nothing, letters_are_resolved_by_the_rules_there_are,
                     a_list_of_states_goes_on_until_it_is_full, what_people_do_to_a_cause_is_noted,
                     what_fails_again_is_counted_apart]
            replays: [a_plan_changes_nothing, a_letter_recovers, a_letter_that_fails_again_is_the_same_letter,
                      attempts_of_a_retry_by_name_are_known,
                      a_retry_stays_with_its_replay, a_letter_is_claimed_once, a_ramp_stops_by_itself,
                      a_paused_replay_rests, a_replay_goes_at_another_rate, a_cancelled_replay_lets_go, cancelling_counts_what_had_begun,
                      cancelling_keeps_the_newest_payload, cancelling_tells_of_a_lost_payload,
                      what_is_given_up_meanwhile_is_gone,
                      an_edited_letter_keeps_its_original,
                      a_letter_goes_when_what_it_lacks_is_supplied, by_itself_only_what_may_go_goes,
                      replayed_letters_respect_breakers, replays_are_listed, a_saved_payload_stays_with_its_letter,
                      letters_are_found_with_what_is_known_of_them, letters_are_chosen_in_steps, who_dies_later_is_not_chosen, a_step_on_what_was_writes_nothing,
                      of_two_drivers_one_is_heard, one_letter_goes_to_one_of_two_replays,
                      what_settles_meanwhile_is_not_lost, a_replay_knows_what_is_left, a_replay_is_cancelled_in_steps,
                      who_works_on_a_letter_keeps_it, old_replays_are_forgotten_in_steps,
                      what_people_do_to_a_replay_is_noted, what_was_processed_is_counted_once_and_stays_leased,
                      open_letters_are_counted_by_group]
            tries: [a_try_changes_nothing_but_itself, what_a_try_recovered_can_be_chosen, old_tries_are_forgotten_in_steps,
                    a_try_that_ends_early_is_over,
                letters_to_try_are_leased_to_one_at_a_time, what_leased_letters_came_to_is_noted_once]
            traffic: [history_is_forgotten, every_rate_has_its_denominator, fields_are_counted, dead_letters_are_counted_by_anything,
                      a_job_is_counted_once_by_target, kept_counts_are_those_that_counting_finds]
            clock: [a_jump_is_remembered, due_times_of_a_clock_that_was_ahead_are_mended,
                    a_scheduled_job_is_pulled_in_once, holds_are_kept_and_not_prolonged,
                    long_leases_are_shortened, a_letter_of_the_future_can_be_replayed]
            leader: [one_leads_at_a_time, a_leader_that_is_gone_is_replaced_at_once, a_lead_survives_clocks_that_differ,
                     a_chore_is_begun_once]
            workers: [a_detached_workers_leases_are_lost, workers_are_listed, holds_are_seen_and_gone_with_the_worker,
                      a_silent_workers_leases_are_lost, a_remote_worker_is_never_gone, what_workers_run_is_listed]
            payloads: [a_payload_on_its_way_is_left_out, the_first_place_counts, what_is_condemned_is_not_registered,
                       what_a_leased_job_wants_is_not_swept, a_settlement_without_its_payload_is_refused, only_what_nobody_wants_is_swept, letters_point_at_their_payload,
                       payloads_are_listed, what_reads_find_of_a_payload_is_noted,
                       reads_of_payloads_are_counted]
            pipelines: [a_pause_is_set_on_what_was_seen, what_was_leased_before_a_pause_stays_leased,
                        an_empty_pipeline_is_forgotten_until_something_comes]
            breakers: [a_hold_sets_the_targets_jobs_aside, probes_go_first_and_success_releases_the_rest,
                       a_failing_target_opens_its_breaker, a_breaker_says_why_and_since_when,
                       the_next_probe_is_another_job, probes_are_counted_by_their_leases,
                       a_job_that_probes_for_days_keeps_one_failure_of_it,
                       what_is_said_at_once_is_folded_in, a_stale_settlement_says_nothing, stale_gates_lease_nothing,
                       holding_goes_in_steps, jobs_that_were_held_for_too_long_are_leased_alone, people_turn_breakers, a_turn_of_what_moved_writes_nothing]
        );
        mod with_another_store {
            $crate::conformance_tests!(@with_another $make;
                traffic: [a_job_is_tracked_once]
                replays: [an_untried_letter_can_be_replayed]
                causes: [imported_letters_have_causes]
                copies: [any_history_comes_over, a_store_that_is_copied_is_not_written, an_unfinished_copy_is_not_worked_on,
                         a_store_is_copied_at_rest_to_an_empty_one, a_piece_is_written_once]
                dead: [export_and_import_lose_nothing, counts_of_an_imported_letter_saturate, a_payload_that_did_not_come_along_is_missing]
            );
        }
        mod with_two_handles {
            $crate::conformance_tests!(@with_two_handles $make;
                handles: [a_job_is_leased_once, resending_changes_nothing, what_is_sent_again_is_accepted_once, clocks_may_differ, stale_guards_write_nothing]
                histories: [any_history_adds_up]
                pipelines: [a_paused_pipeline_gives_nothing]
            );
        }
    };
    (@cases $make:ident; $($noun:ident: [$($case:ident),* $(,)?])*) => {
        $(mod $noun {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture = super::$make();
                $crate::conformance::$noun::$case($crate::conformance::Fixture::handle(&fixture).await).await;
                $crate::conformance::recount::recount(&fixture).await;
            })*
        })*
    };
    (@with_another $make:ident; $($noun:ident: [$($case:ident),* $(,)?])*) => {
        $(mod $noun {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture = super::super::$make();
                let store = $crate::conformance::Fixture::handle(&fixture).await;
                let other = $crate::conformance::Fixture::other(&fixture).await;
                $crate::conformance::$noun::$case(store, other).await;
                $crate::conformance::recount::recount(&fixture).await;
            })*
        })*
    };
    (@with_two_handles $make:ident; $($noun:ident: [$($case:ident),* $(,)?])*) => {
        $(mod $noun {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture = super::super::$make();
                let first = $crate::conformance::Fixture::handle(&fixture).await;
                let second = $crate::conformance::Fixture::handle(&fixture).await;
                $crate::conformance::$noun::$case(first, second).await;
                $crate::conformance::recount::recount(&fixture).await;
            })*
        })*
    };
}

/// Makes one test for each of some cases: what the case leaves in a store is copied to another, and both are compared. `$make` is a
/// function that gives a fresh [`Fixture`], whose other store may be of another backend.
#[macro_export]
macro_rules! copied_tests {
    ($make:ident) => {
        $crate::copied_tests!(@cases $make;
            jobs: [shows_jobs_in_every_state, cancels_queued_and_leased_jobs, a_huge_input_comes_back_whole]
            leases: [a_stale_settlement_moves_nothing, a_retry_waits_and_counts]
            definitions: [commands_are_kept_with_every_folder_that_they_ran_in]
            history: [what_is_forgotten_is_counted]
            rounds: [a_round_has_a_ledger_of_its_own]
            causes: [people_have_their_say, a_part_of_a_part_is_split_off, a_merge_taken_back]
            replays: [a_retry_stays_with_its_replay, a_paused_replay_rests, cancelling_tells_of_a_lost_payload,
                      an_edited_letter_keeps_its_original, replayed_letters_respect_breakers,
                      a_saved_payload_stays_with_its_letter, by_itself_only_what_may_go_goes]
            tries: [a_try_changes_nothing_but_itself, what_leased_letters_came_to_is_noted_once]
            traffic: [every_rate_has_its_denominator, fields_are_counted]
            counts: [folding_changes_no_sum, totals_only_grow]
            leader: [a_chore_is_begun_once]
            alerts: [a_failing_sink_is_left_alone_and_seen]
            payloads: [letters_point_at_their_payload]
            facets: [both_sides_are_counted_once]
            good: [a_cause_holds_on_to_the_page_that_worked]
            pipelines: [a_pause_is_set_on_what_was_seen]
            breakers: [a_hold_sets_the_targets_jobs_aside, what_is_said_at_once_is_folded_in, people_turn_breakers]
        );
        mod history_of_any_kind {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn comes_over() {
                let fixture = super::$make();
                let store = $crate::conformance::Fixture::handle(&fixture).await;
                let other = $crate::conformance::Fixture::other(&fixture).await;
                $crate::conformance::copies::any_history_comes_over(store, other).await;
            }
        }
    };
    (@cases $make:ident; $($noun:ident: [$($case:ident),* $(,)?])*) => {
        $(mod $noun {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let fixture = super::$make();
                let store = $crate::conformance::Fixture::handle(&fixture).await;
                let other = $crate::conformance::Fixture::other(&fixture).await;
                $crate::conformance::$noun::$case(std::sync::Arc::clone(&store)).await;
                $crate::conformance::copies::copy_and_compare(store, other).await;
            })*
        })*
    };
}
