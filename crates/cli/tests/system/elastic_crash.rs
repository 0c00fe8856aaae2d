//! Workers, parameter servers and masters of elastic trainings are killed at random moments. Owns:
//! the conditions afterwards: every record is accounted for, the model is correct, no process is
//! left over. Does not know about: how the parts fulfil them.
//!
//! A few kills by default; `ELASTANE_SOAK_ROUNDS=200` and `ELASTANE_SOAK_SEED=n` make it a soak.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::crash::{Random, number_from};
use crate::elastic_counting::COUNT;
use crate::elastic_training::{MASTER, PLAIN, SERVER, WORKER, running};
use crate::sandbox::{Sandbox, kill, wait_until};
use crate::workers;

/// Kills in one job: fewer in a row than its restart limit.
const BLOWS_MAX: u64 = 4;
const EPOCHS: u64 = 6;
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

/// Model that counts what it is trained on.
const COUNTING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/tests/torn_model.py");
/// Numbers of parameter servers, of one job after the other.
const SERVERS: [u64; 3] = [2, 1, 4];

/// Parts of a job, with their programs.
const PARTS: [(&str, &str); 3] =
    [("worker", WORKER), ("parameter server", SERVER), ("master", MASTER)];

/// Training of a job: its model, its data, and the check of the model that it saves.
struct Training {
    model: &'static str,
    data: &'static str,
    records: u64,
    minibatch: u64,
    script: &'static str,
    /// Checks the answer of the script about the saved model.
    is_right: fn(&str) -> bool,
}

/// Digits, whose model recognizes them afterwards.
const DIGITS: Training = Training {
    model: "digits_numpy",
    data: "plain/train",
    records: 1500,
    minibatch: 10,
    script: JUDGE,
    is_right: |answer| {
        let right = answer.split_whitespace().find_map(|word| word.parse::<u32>().ok());
        right.is_some_and(|right| right >= 85)
    },
};
/// Numbers, whose model counts how often it is trained on each.
const NUMBERS: Training = Training {
    model: "torn_model",
    data: "numbers.csv",
    records: 900,
    minibatch: 4,
    script: COUNT,
    is_right: |answer| answer.trim() == format!("seen: {{{EPOCHS}.0: {}}}", NUMBERS.records),
};

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
            "mkdir zoo out && cp '{PLAIN}' '{COUNTING}' zoo && python3 -m elastane.digits plain && \
             seq 0 {} > numbers.csv && chmod a+rwx out && chmod -R a+rX . && elastane project create default && \
             runai config project default",
            NUMBERS.records - 1
        ));
        assert_eq!(made.code, Some(0), "{}", made.text);
        Self { sandbox, random: Random(seed), hit: BTreeMap::new() }
    }

    /// Kills parts of a job with this many parameter servers this many times; it continues each
    /// time, and succeeds.
    fn job(&mut self, number: u64, training: &Training, servers: u64, blows: u64) {
        let job = format!("j{number}");
        let Training { model, data, records, minibatch, script, is_right } = training;
        let submitted = self.sandbox.shell(&format!(
            "elasticdl train --job_name={job} --model_zoo=zoo --model_def={model}.custom_model \
             --training_data=$PWD/{data} --num_epochs={EPOCHS} --minibatch_size={minibatch} \
             --num_minibatches_per_task=5 --num_workers=2 --num_ps_pods={servers} \
             --grads_to_wait=2 --envs=GRADIENTS_OF_AN_UPDATE=2 \
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
        let count = EPOCHS * records;
        self.sandbox.await_text(&log, &format!("job {job} succeeded: {count} records (0 unread"));
        let applied = format!("0 failed; the model has the gradients of {count} records");
        let lines = self.sandbox.shell(&log).text;
        assert!(lines.contains(&applied), "{job}, {servers} servers: {lines}");
        self.sandbox.await_status("runai list jobs", &job, "Succeeded");
        std::fs::write(self.sandbox.home().join("judge.py"), script).expect("written");
        let judged = self.sandbox.shell(&format!("python3 judge.py out/{job}/*.npz"));
        assert!(is_right(&judged.text), "{job}, {servers} servers: {}", judged.text);
        let deleted = self.sandbox.shell(&format!("elasticdl delete {job}"));
        assert_eq!(deleted.code, Some(0), "{}", deleted.text);
        let left = || PARTS.map(|(_, part)| running(&self.sandbox, part));
        let is_clean = wait_until(|| left().iter().all(BTreeMap::is_empty));
        assert!(is_clean, "{job} left {:?}", left());
    }
}

/// Trains until enough parts were killed, with another number of servers in each job. The text says
/// how many of each part.
fn kill_parts_of(training: &Training) -> String {
    let Some(programs) = workers::programs() else { return String::new() };
    let rounds = number_from("ELASTANE_SOAK_ROUNDS", 3);
    let mut story = Story::begin(number_from("ELASTANE_SOAK_SEED", 21), &programs);
    let mut jobs = 0;
    while story.hit.values().sum::<u32>() < u32::try_from(rounds).expect("fits") {
        let left = rounds - u64::from(story.hit.values().sum::<u32>());
        let servers = SERVERS[jobs % SERVERS.len()];
        story.job(jobs as u64, training, servers, left.min(BLOWS_MAX));
        jobs += 1;
    }
    format!("{jobs} trainings, killed: {:?}", story.hit)
}

#[test]
fn parts_of_trainings_that_crash_cost_no_record_and_no_model() {
    println!("{}", kill_parts_of(&DIGITS));
}

#[test]
fn each_record_counts_once_an_epoch_whatever_part_crashes() {
    println!("{}", kill_parts_of(&NUMBERS));
}
