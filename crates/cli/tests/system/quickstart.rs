//! The quickstart workload as a process of its own. Owns: its reaction to signals. Does not know
//! about: servers.

use crate::sandbox::Sandbox;

#[test]
fn sigterm_ends_the_training_and_a_new_one_resumes() {
    let sandbox = Sandbox::new();
    let output = sandbox.shell(
        "elastane quickstart-workload --checkpoint-dir kept > log & pid=$!\n\
         until grep -qs '^step ' log; do sleep 0.02; done\n\
         kill -TERM $pid; wait $pid; echo \"ended with $?\"; tail -n 1 log",
    );
    let (ended, last) = output.text.split_once('\n').expect("two lines");
    assert_eq!(ended, "ended with 143", "{}", output.text);
    let step = last.trim().strip_prefix("asked to stop; checkpoint written at step ");
    let step: u64 = step.and_then(|step| step.parse().ok()).expect("a step");

    let output = sandbox.shell(&format!(
        "RUNAI_NUM_OF_GPUS=2 ELASTANE_CHECKPOINT_DIR=kept elastane quickstart-workload --steps {}",
        step + 1
    ));
    assert_eq!(output.code, Some(0), "{}", output.text);
    let begin = format!("resumed at step {step}, seed 1\ntraining on gpus 2 accumulation 2 ");
    assert!(output.text.starts_with(&begin), "{}", output.text);
    assert!(output.text.ends_with(&format!("finished at step {}\n", step + 1)), "{}", output.text);
}

#[test]
fn a_bad_argument_ends_with_the_usage_code() {
    let output = Sandbox::new().shell("elastane quickstart-workload --steps none");
    assert_eq!(output.code, Some(2), "{}", output.text);
    assert!(output.text.contains("--steps must be a whole number"), "{}", output.text);
}
