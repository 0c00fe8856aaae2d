//! Progress of an elastic training. Owns: its words and its table of workers.

use api_types::{JobTraining, Pod};
use cli_kit::table::{Table, ago};

use super::Page;

/// Progress, and the state of each worker; `None` without a running elastic training.
pub(super) fn text(page: &Page<'_>, columns: [&str; 5]) -> Option<String> {
    let job = page.workload.additional_fields.training.as_ref()?;
    let mut table = Table::new(&columns);
    page.pods.iter().filter_map(row).for_each(|row| table.row(row));
    let how_far = format!("{}\n", sentence(job, page.now_ms));
    Some(how_far + &table.within(page.columns).plain())
}

fn row(pod: &Pod) -> Option<[String; 5]> {
    let training = pod.training.as_ref()?;
    let tasks: Vec<_> = training.tasks.iter().map(u64::to_string).collect();
    let tasks = match tasks.is_empty() {
        _ if training.leaving => "hands back".to_owned(),
        true => "-".to_owned(),
        false => tasks.join(","),
    };
    Some([
        pod.name.clone(),
        training.rank.to_string(),
        tasks,
        training.model_version.to_string(),
        tenths(training.samples_per_second.0),
    ])
}

/// `epoch 1, 300 of 1500 records, 390.5 samples/s; model of version 45, checkpoint of version 40,
/// 12 s ago`.
pub(crate) fn sentence(job: &JobTraining, now_ms: u64) -> String {
    let JobTraining { epoch, records, records_total, bad_records, .. } = job;
    let total = records_total.map(|total| format!(" of {total}")).unwrap_or_default();
    let bad = match bad_records {
        0 => String::new(),
        bad => format!(" ({bad} unreadable)"),
    };
    let rows = match job.embedding_rows {
        0 => String::new(),
        rows => format!(" with {rows} embedding rows"),
    };
    let old = match job.old_gradients {
        0 => String::new(),
        old => format!("; {old} gradients were too old"),
    };
    let saved = match (job.checkpoint_version, job.checkpointed_at) {
        (0, _) => "no checkpoint yet".to_owned(),
        (version, None) => format!("checkpoint of version {version}"),
        (version, Some(at)) => {
            let when = ago(now_ms.saturating_sub(at.0.0));
            format!("checkpoint of version {version}, {when}")
        }
    };
    format!(
        "epoch {epoch}, {records}{total} records{bad}, {} samples/s; model of version {}{rows}, \
         {saved}{old}",
        tenths(job.samples_per_second.0),
        job.model_version
    )
}

/// Thousandths with one digit.
fn tenths(millis: u64) -> String {
    let tenths = millis.saturating_add(50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use api_types::{Millis, Time};
    use units::Instant;

    use super::*;

    #[test]
    fn how_far_a_training_is_and_what_a_stop_would_cost() {
        let job = JobTraining {
            epoch: 1,
            records: 300,
            records_total: Some(1500),
            model_version: 45,
            checkpoint_version: 40,
            checkpointed_at: Some(Time(Instant(60_000))),
            samples_per_second: Millis(390_449),
            ..JobTraining::default()
        };
        assert_eq!(
            sentence(&job, 72_000),
            "epoch 1, 300 of 1500 records, 390.4 samples/s; model of version 45, checkpoint of \
             version 40, 12 s ago"
        );
        let job = JobTraining { embedding_rows: 900, old_gradients: 3, ..job };
        let text = sentence(&job, 72_000);
        assert!(text.contains("version 45 with 900 embedding rows, checkpoint"), "{text}");
        assert!(text.ends_with("12 s ago; 3 gradients were too old"), "{text}");
        let new = JobTraining { records: 7, bad_records: 2, ..JobTraining::default() };
        assert_eq!(
            sentence(&new, 0),
            "epoch 0, 7 records (2 unreadable), 0.0 samples/s; model of version 0, no checkpoint yet"
        );
    }
}
