//! The behaviour that every store has, whatever it keeps its tasks in.
//!
//! ```
//! use std::sync::Arc;
//! use raincheck_core::store::{MemoryLimits, MemoryStore};
//! use raincheck_testkit::conformance;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! conformance::tasks(async || Arc::new(MemoryStore::new(MemoryLimits::default())) as _).await;
//! # }
//! ```

mod logs;
mod tasks;

use std::sync::Arc;

use raincheck_core::log::LogStore;
use raincheck_core::store::TaskStore;

/// Runs every check of task stores, each on a fresh empty store that `make` gives.
///
/// # Panics
/// When a check fails; the message names the requirement.
pub async fn tasks<F>(make: F)
where
    F: AsyncFn() -> Arc<dyn TaskStore>,
{
    queue(&make).await;
    attempts(&make).await;
    late(&make).await;
    reading(&make).await;
}

async fn queue(make: &impl AsyncFn() -> Arc<dyn TaskStore>) {
    tasks::positions_follow_priority_then_arrival(&*make().await).await;
    tasks::a_full_lane_refuses_and_loses_nothing(&*make().await).await;
    tasks::a_lane_never_runs_more_than_its_concurrency(&*make().await).await;
    tasks::one_key_is_one_task(&*make().await).await;
    tasks::the_key_of_a_request_lives_as_long_as_its_row(&*make().await).await;
    tasks::a_held_lane_keeps_its_order(&*make().await).await;
}

async fn attempts(make: &impl AsyncFn() -> Arc<dyn TaskStore>) {
    tasks::a_queued_task_is_cancelled_at_once(&*make().await).await;
    tasks::a_slot_outlives_its_task(&*make().await).await;
    tasks::a_stale_attempt_changes_nothing(&*make().await).await;
    tasks::a_dead_attempt_leaves_nothing_to_the_next(&*make().await).await;
    tasks::deadlines_fire_and_heartbeats_hold_them_off(&*make().await).await;
    tasks::limits_of_attempts_can_be_moved(&*make().await).await;
    tasks::a_failed_attempt_is_retried_by_policy(&*make().await).await;
    tasks::an_end_between_attempts_is_no_attempt(&*make().await).await;
}

async fn late(make: &impl AsyncFn() -> Arc<dyn TaskStore>) {
    tasks::a_late_outcome_is_kept_beside_the_end(&*make().await).await;
    tasks::what_a_peer_says_after_it_was_given_up_is_kept(&*make().await).await;
    tasks::what_a_peer_says_after_it_has_stopped_is_kept(&*make().await).await;
    tasks::a_report_after_the_last_word_is_not_kept(&*make().await).await;
    tasks::an_end_that_is_recorded_late_is_when_it_was(&*make().await).await;
}

async fn reading(make: &impl AsyncFn() -> Arc<dyn TaskStore>) {
    tasks::a_foreign_scope_sees_nothing(&*make().await).await;
    tasks::an_expired_task_is_a_tombstone_then_nothing(&*make().await).await;
    tasks::what_no_row_knows_is_told_whoever_asks(&*make().await).await;
    tasks::an_artifact_is_found_by_its_id_as_long_as_its_task_is_read(&*make().await).await;
    tasks::a_history_is_one_chain(&*make().await).await;
    tasks::a_history_is_read_by_its_owner_until_retention_is_over(&*make().await).await;
    tasks::an_answer_is_taken_from_the_owner_and_for_what_is_asked(&*make().await).await;
    tasks::questions_and_answers_are_kept_with_their_task(&*make().await).await;
    tasks::lists_page_without_gap_or_repeat(&*make().await).await;
}

/// Runs every check of log stores, each on a fresh empty store that `make` gives.
///
/// # Panics
/// When a check fails; the message names the requirement.
pub async fn logs<F>(make: F)
where
    F: AsyncFn() -> Arc<dyn LogStore>,
{
    logs::pages_have_no_gap_and_no_repeat(&*make().await).await;
    logs::a_quota_leaves_one_record_with_counts(&*make().await).await;
    logs::lines_without_text_count_against_the_quota(&*make().await).await;
    logs::an_older_attempt_adds_nothing(&*make().await).await;
    logs::numbers_go_on_across_attempts(&*make().await).await;
    logs::what_is_removed_is_gone(&*make().await).await;
}
