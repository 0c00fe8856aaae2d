//! Workers, parameter servers and masters of elastic trainings are killed at random moments. Owns:
//! the conditions afterwards: every record is accounted for, the model is correct, no process is
//! left over. Does not know about: how the parts fulfil them.
//!
//! A few kills by default; `ELASTANE_SOAK_ROUNDS=200` and `ELASTANE_SOAK_SEED=n` make it a soak.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::crash::{Random, number_from};
use crate::elastic_training::{MASTER, PLAIN, SERVER, WORKER, running};
use crate::sandbox::{Sandbox, kill, wait_until};
use crate::workers;

/// Kills in one job: fewer in a row than its restart limit.
const BLOWS_MAX: u64 = 4;
const EPOCHS: u64 = 6;
const RECORDS: u64 = 1500;
/// Script that prints the accuracy of a saved model on the test images, in percent.
const JUDGE: &str = r#"
import sys
import numpy as np
sys.path.insert(0, "zoo")
import digits_numpy as model
from elastane.recordio import RecordFile
saved = np.load(sys.argv[1])
net = model.custom_model()
assert set(net.parameters) <= set(saved.files), saved.files
for name in net.parameters:
    assert np.isfinite(saved[name]).all(), name
    net.parameters[name] = saved[name]
records = [record for _, record in RecordFile("plain/test/data-00000").read()]
images, labels = model.feed(records, "evaluation", None)
right = net.forward(images, False).argmax(axis=1) == labels
print("right:", int(100 * right.mean()), "percent")
"#;

/// Parts of a job, with their programs.
const PARTS: [(&str, &str); 3] =
    [("worker", WORKER), ("parameter server", SERVER), ("master", MASTER)];

struct Story {
    sandbox: Sandbox,
    random: Random,
    hit: BTreeMap<&'static str, u32>,
}

impl Story {
    fn begin(seed: u64, programs: &std::path::Path) -> Self {
        let mut sandbox = Sandbox::new().with_programs(programs);
        sandbox.start_server("elastane up --nodes 1x0,cpu=8,memory=15GB");
        let made = sandbox.shell(&format!(
            "mkdir zoo out && cp '{PLAIN}' zoo && python3 -m elastane.digits plain && \
             chmod a+rwx out && chmod -R a+rX . && elastane project create default && \
             runai config project default"
        ));
        assert_eq!(made.code, Some(0), "{}", made.text);
        std::fs::write(sandbox.home().join("judge.py"), JUDGE).expect("written");
        Self { sandbox, random: Random(seed), hit: BTreeMap::new() }
    }

    /// Kills parts of a job this many times; it continues each time, and succeeds.
    fn job(&mut self, number: u64, blows: u64) {
        let job = format!("j{number}");
        let submitted = self.sandbox.shell(&format!(
            "elasticdl train --job_name={job} --model_zoo=zoo --model_def=digits_numpy.custom_model \
             --training_data=$PWD/plain/train --num_epochs={EPOCHS} --minibatch_size=10 \
             --num_minibatches_per_task=5 --num_workers=2 --num_ps_pods=2 --grads_to_wait=2 \
             --image_name=$(command -v python3) --checkpoint_steps=10 --output=$PWD/out/{job} \
             --relaunch_on_worker_failure=9 --ps_resource_request=cpu=0.5,memory=512Mi \
             --worker_resource_request=cpu=1,memory=1024Mi"
        ));
        assert_eq!(submitted.code, Some(0), "{}", submitted.text);
        let log = format!("elasticdl logs {job}");
        self.sandbox.await_text(&log, "epoch 0: ");
        for _ in 0..blows {
            std::thread::sleep(Duration::from_millis(self.random.below(1000)));
            let (name, part) = PARTS[usize::try_from(self.random.below(3)).expect("an index")];
            let there: Vec<u32> = running(&self.sandbox, part).into_values().collect();
            if there.is_empty() {
                continue;
            }
            let at = usize::try_from(self.random.below(there.len() as u64)).expect("an index");
            kill(there[at]);
            *self.hit.entry(name).or_default() += 1;
        }
        let ended = format!("job {job} succeeded: {} records (0 unreadable) in ", EPOCHS * RECORDS);
        self.sandbox.await_text(&log, &ended);
        self.sandbox.await_status("runai list jobs", &job, "Succeeded");
        let judged = self.sandbox.shell(&format!("python3 judge.py out/{job}/*.npz"));
        let right = judged.text.split_whitespace().find_map(|word| word.parse::<u32>().ok());
        assert!(right.is_some_and(|right| right >= 85), "{job}: {}", judged.text);
        let deleted = self.sandbox.shell(&format!("elasticdl delete {job}"));
        assert_eq!(deleted.code, Some(0), "{}", deleted.text);
        let left = || PARTS.map(|(_, part)| running(&self.sandbox, part));
        let is_clean = wait_until(|| left().iter().all(BTreeMap::is_empty));
        assert!(is_clean, "{job} left {:?}", left());
    }
}

#[test]
fn parts_of_trainings_that_crash_cost_no_record_and_no_model() {
    let Some(programs) = workers::programs() else { return };
    let rounds = number_from("ELASTANE_SOAK_ROUNDS", 3);
    let mut story = Story::begin(number_from("ELASTANE_SOAK_SEED", 21), &programs);
    let mut jobs = 0;
    while story.hit.values().sum::<u32>() < u32::try_from(rounds).expect("fits") {
        let left = rounds - u64::from(story.hit.values().sum::<u32>());
        story.job(jobs, left.min(BLOWS_MAX));
        jobs += 1;
    }
    println!("{jobs} trainings, killed: {:?}", story.hit);
}
