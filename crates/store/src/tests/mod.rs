//! The store as its users meet it: real files, real servers, real faults.

mod backup;
mod conformance;
mod cut_off;
mod documents;
mod faults;
mod lab;
mod migrations;
pub(crate) mod samples;
mod tls;

mod both {
    pub(super) use super::backup::*;
    pub(super) use super::conformance::*;
    pub(super) use super::documents::*;
}

/// Each of these for each database.
macro_rules! for_both {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            use super::{both, lab::Lab};
            $(#[tokio::test]
            async fn $test() {
                both::$test(&Lab::sqlite()).await;
            })+
        }
        mod postgres {
            use super::{both, lab::Lab};
            $(#[tokio::test]
            async fn $test() {
                let Some(lab) = Lab::postgres().await else { return };
                both::$test(&lab).await;
            })+
        }
    };
}

for_both!(
    everything_comes_back_after_reopening,
    deleted_things_are_history_and_their_numbers_stay_used,
    what_was_deleted_is_read_and_forgotten_and_its_number_is_not,
    of_deleted_workloads_those_of_the_projects_with_the_most_go,
    of_deleted_workloads_of_a_project_those_of_the_users_with_the_most_go,
    deleted_objects_leave_nothing_but_the_last_number,
    archived_workloads_are_no_part_of_a_start_and_are_found_by_what_is_asked,
    archived_workloads_are_listed_in_every_order_and_in_pages,
    the_past_of_a_workload_is_as_it_was_written_last,
    a_batch_is_written_whole_or_not_at_all,
    a_change_of_an_unknown_workload_is_an_error,
    of_many_rows_in_a_batch_the_last_word_counts,
    events_are_filtered_and_ordered,
    credentials_and_audit_are_kept,
    one_server_owns_a_state_directory,
    objects_come_back_and_their_names_are_free_after_deletion,
    the_event_log_only_grows,
    a_log_forgets_its_oldest_rows_and_never_its_newest,
    a_log_forgets_events_of_a_group_and_no_others,
    the_audit_log_forgets_rows_of_a_subject_and_no_others,
    a_text_with_a_nul_is_kept_without_it,
    a_newer_database_is_refused,
    many_writers_take_turns,
    who_gives_up_leaves_the_next_one_a_way,
    a_backup_shows_one_moment,
    a_state_is_not_replaced_by_mistake,
    what_no_server_understands_is_not_restored,
    what_is_not_whole_is_refused_and_changes_nothing,
    names_are_looked_at_closely,
    samples_are_read_by_subject_step_and_time,
    the_ledger_is_exact_and_adds_up,
    every_document_has_a_version,
    a_newer_document_is_refused_and_left,
    the_newest_release_that_was_here_is_noted,
    columns_that_are_searched_follow_the_document,
);
