//! Completions of an unfinished line.

use crate::args::tree;
use crate::complete::noun_in;
use crate::intent::{Framework, Noun};

/// Completions of the last word of a line, without names of a server.
fn goes_on(line: &str) -> Vec<String> {
    let words: Vec<_> = line.split(' ').map(Into::into).collect();
    let last = words.len() - 1;
    let found = clap_complete::engine::complete(&mut tree(), words, last, None).unwrap();
    found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_line_goes_on_with_commands_flags_and_values() {
    for (line, words) in [
        ("runai tr", vec!["training"]),
        ("runai submit-", vec!["submit-dist", "submit-mpi"]),
        ("runai training py", vec!["pytorch"]),
        ("runai training pytorch submit --min", vec!["--min-replicas"]),
        ("runai training submit --gpu-p", vec!["--gpu-portion-request", "--gpu-portion-limit"]),
        ("runai workload list --type d", vec!["distributed"]),
        ("runai completion z", vec!["zsh"]),
        ("runai workload list --status Stop", vec!["Stopping", "Stopped"]),
        ("runai training submit a --priority medium-", vec!["medium-low", "medium-high"]),
    ] {
        assert_eq!(goes_on(line), words, "{line}");
    }
}

#[test]
fn only_workloads_that_the_command_is_about_are_offered() {
    for (line, noun) in [
        ("runai logs", Noun::Job),
        ("runai workload logs", Noun::Job),
        ("runai training logs", Noun::Training),
        ("runai training standard logs", Noun::Standard),
        ("runai trainings pytorch logs", Noun::Framework(Framework::PyTorch)),
        ("runai tf logs", Noun::Framework(Framework::Tf)),
        ("runai workspace bash", Noun::Workspace),
        ("runai -p a inference logs", Noun::Inference),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(noun_in(&words), noun, "{line}");
    }
}

#[test]
fn flags_without_effect_are_not_offered() {
    assert!(goes_on("runai submit --").iter().all(|flag| flag != "--local-image"));
    assert!(goes_on("runai ").iter().all(|word| word != "distributed"));
}
