//! Command lines as users type them.

use super::*;

/// The required flags of all forms.
const LEAST: &str = "--job_name=j --model_file=m.py --image_base=i --train_data_dir=/d \
                     --record_per_task=100 --num_epoch=1 --grads_to_wait=2 --minibatch_size=10";

fn parsed(line: &str) -> Result<Parsed, String> {
    let words = std::iter::once("elasticdl").chain(line.split_whitespace());
    let argv: Vec<OsString> = words.map(OsString::from).collect();
    parse(&argv).map_err(|error| error.render().to_string())
}

fn job(line: &str) -> (Form, Values, Vec<String>) {
    let Parsed { asked, notes, .. } = parsed(line).expect(line);
    match asked {
        Invocation::Job(form, values) => (form, values, notes),
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> String {
    parsed(line).map(|parsed| parsed.asked).expect_err(line)
}

#[test]
fn the_commands_of_the_document_are_understood() {
    let (form, values, notes) = job("--job_name=low-prio-job \
         --model_file=elasticdl/python/examples/mnist_functional_api.py \
         --train_data_dir=/data/mnist/train --master_pod_priority=high-priority \
         --worker_pod_priority=low-priority --num_epoch=1 --minibatch_size=10 \
         --record_per_task=100 --num_worker=2 --master_cpu_request=1000m \
         --master_cpu_limit=1000m --master_memory_request=1024Mi --master_memory_limit=1024Mi \
         --worker_cpu_request=3000m --worker_cpu_limit=3000m --worker_memory_request=4096Mi \
         --worker_memory_limit=4096Mi --grads_to_wait=2 --codec_type=bytes \
         --repository=gcr.io --image_base=gcr.io/elasticdl/elasticdl:dev");
    assert_eq!(form, Form::Seed);
    assert_eq!((values.count("num_worker"), values.count("record_per_task")), (2, 100));
    assert_eq!(values.text("worker_pod_priority"), "low-priority");
    assert_eq!(values.text("image_pull_policy"), "Always");
    assert!(values.is_given("master_cpu_limit") && !values.is_given("image_pull_policy"));
    assert!(notes.len() == 2 && notes[0].starts_with("--repository: the push is refused"));
    assert!(notes[1].starts_with("--master_pod_priority: a job has one priority"), "{notes:?}");
}

/// Published flags whose default is another here, and why.
const OTHER_DEFAULTS: &[(&str, &str)] = &[
    ("checkpoint_steps", "a job that is killed loses at most these versions"),
    ("extra_pypi_index", "it is a flag of `zoo init`"),
];

#[test]
fn every_published_flag_is_there_with_its_default() {
    for line in include_str!("published.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let &[form, name, default] = words.as_slice() else { panic!("{line}") };
        let form = match form {
            "seed" => Form::Seed,
            "train" => Form::Train,
            "evaluate" => Form::Evaluate,
            "predict" => Form::Predict,
            _ => panic!("{line}"),
        };
        let flag = crate::flags::find(&form.tables(), name);
        let flag = flag.unwrap_or_else(|| panic!("{line}: it is unknown"));
        assert_eq!(flag.required, default == "*", "{line}");
        let is_other = OTHER_DEFAULTS.iter().any(|(other, _)| *other == name);
        match default {
            "*" | "~" => {}
            "-" => assert!(matches!(flag.default, None | Some("")), "{line}: {:?}", flag.default),
            _ => assert_eq!(flag.default == Some(default), !is_other, "{line}: {:?}", flag.default),
        }
    }
}

#[test]
fn the_commands_of_a_tutorial_about_estimators_are_understood() {
    let line = "train --image_name=i --worker_image=i --ps_image=i --num_ps=1 --num_workers=1 \
                --chief_resource_request=cpu=0.3,memory=1024Mi --num_evaluator=1 \
                --evaluator_resource_limit=cpu=1,memory=2048Mi --job_name=j \
                --job_command=python --distribution_strategy=ParameterServerStrategy";
    let (_, values, notes) = job(line);
    assert_eq!(values.count("num_ps_pods"), 1);
    let about = |flag: &str| notes.iter().any(|note| note.starts_with(flag));
    assert!(about("--num_evaluator: the workers of a job are alike"), "{notes:?}");
    assert!(about("--chief_resource_request: ") && about("--evaluator_resource_limit: "));
}

#[test]
fn flags_come_in_any_order_cut_short_and_more_than_once() {
    let (_, values, _) = job(&format!("--num_w 3 {LEAST} --minib=20 --worker_cpu_r=500m"));
    let asked = (values.count("num_worker"), values.count("minibatch_size"));
    assert_eq!((asked, values.text("worker_cpu_request")), ((3, 20), "500m"));
    // A flag of May 2019 whose final name is the plural is an abbreviation of the new one.
    assert_eq!(job("train --job_name=j --num_worker 3").1.count("num_workers"), 3);
}

#[test]
fn what_is_cut_too_short_or_unknown_is_refused() {
    for (line, said) in [
        (format!("{LEAST} --num_wrkers=1"), "--num_worker"),
        (format!("{LEAST} --train_dat_dir=/d"), "--train_data_dir"),
        (format!("{LEAST} --worker_cpu=1m"), "--worker_cpu_"),
        (format!("{LEAST} extra"), "unexpected argument 'extra'"),
        ("train --job_name=j --num_epoch_s=1".to_owned(), "--num_epochs"),
        ("trian --job_name=j".to_owned(), "'train'"),
        ("train".to_owned(), "--job_name"),
        ("--job_name=j".to_owned(), "--model_file"),
    ] {
        let text = refusal(&line);
        assert!(text.contains(said), "{line}: {text}");
    }
}

#[test]
fn a_value_of_another_form_is_refused_with_what_is_allowed() {
    for (flag, said) in [
        ("--master_cpu_request=1", "such as 1000m"),
        ("--worker_cpu_limit=0.5", "such as 1000m"),
        ("--worker_memory_request=4096", "such as 4096Mi"),
        ("--num_worker=-1", "from 0"),
        ("--minibatch_size=0", "from 1"),
        ("--codec_type=json", "bytes, tf_example"),
        ("--image_pull_policy=Sometimes", "Never, IfNotPresent, Always"),
        ("--worker_pod_priority=high=2", "from 0 to 1"),
        ("--log_level=loud", "DEBUG"),
        ("--tls=1", "write true or false"),
    ] {
        let text = refusal(&format!("{LEAST} {flag}"));
        assert!(text.contains(said), "{flag}: {text}");
    }
}

#[test]
fn a_switch_alone_is_turned_over() {
    for (flag, on) in [
        ("--use_async", true),
        ("--use_async=yes", true),
        ("--use_async=T", true),
        ("--use_async=1", false),
        ("", false),
    ] {
        let (_, values, _) = job(&format!("train --job_name=j {flag}"));
        assert_eq!(values.is_on("use_async"), on, "{flag}");
    }
    let (_, values, notes) = job("train --job_name=j --task_fault_tolerance");
    assert!(!values.is_on("task_fault_tolerance"));
    assert_eq!(notes, ["--task_fault_tolerance: tasks of dead workers are always done again"]);
}

#[test]
fn what_has_no_meaning_here_is_said_by_its_name() {
    let text = refusal("train --job_name=j --cluster_spec=spec.py");
    assert!(text.contains("--cluster_spec has no meaning here: pods are not"), "{text}");
    // A refused flag with its default value is no error.
    assert!(job("train --job_name=j --cluster_spec=").2.is_empty());
    let text = refusal("train --job_name=j --need_tf_config");
    assert!(text.contains("--need_tf_config"), "{text}");
}

#[test]
fn the_other_commands_are_understood() {
    let asked = |line: &str| parsed(line).expect(line).asked;
    assert!(
        matches!(asked("zoo init --base_image=x"), Invocation::ZooInit(of) if of.text("base_image") == "x")
    );
    assert!(matches!(
        asked("local predict --job_name=j --prediction_data=/p --checkpoint_dir_for_init=/c"),
        Invocation::Local(Form::Predict, of) if of.text("prediction_data") == "/p"
    ));
    assert!(matches!(asked("local train --job_name=j"), Invocation::Local(Form::Train, _)));
    assert!(refusal("local fly").contains("fly"));
    assert!(matches!(asked("zoo build . --image=a:b"), Invocation::ZooBuild(at, _) if at == "."));
    assert!(matches!(asked("zoo push a:b"), Invocation::ZooPush(image) if image == "a:b"));
    assert!(matches!(asked("jobs"), Invocation::Own(Own::Jobs { .. })));
    assert!(matches!(
        asked("pods -l elasticdl_job_name=j"),
        Invocation::Own(Own::Pods { selector: Some(of), .. }) if of == "elasticdl_job_name=j"
    ));
    let Invocation::Own(Own::Master { flags }) = asked("master --port 1 --x=y") else {
        panic!("no master");
    };
    assert_eq!(flags, ["--port", "1", "--x=y"]);
    assert_eq!(parsed("jobs -p team-a").expect("reads").common.project.as_deref(), Some("team-a"));
}

/// Python files in which a worker reads flags that the master forwards.
const WORKER: [&str; 3] = [
    include_str!("../../../../sdk/python/src/elastane/settings.py"),
    include_str!("../../../../sdk/python/src/elastane/contract.py"),
    include_str!("../../../../sdk/python/src/elastane/worker.py"),
];

#[test]
fn every_flag_is_read_or_said_to_mean_nothing_or_refused() {
    let final_form = "--job_name=j --model_zoo=src --model_def=m.f --num_ps_pods=1";
    for line in [
        LEAST.replace("m.py", "src/lib.rs") + " --num_worker=1",
        format!("train {final_form} --training_data=/d"),
        format!("evaluate {final_form} --validation_data=/v --checkpoint_dir_for_init=/c"),
        format!("predict {final_form} --prediction_data=/p --checkpoint_dir_for_init=/c"),
    ] {
        let (form, values, _) = job(&line);
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let job = crate::job::Job::new(form, &values, folder).expect("a job");
        let (read, told) = (values.read(), job.told);
        let by_worker = |name: &str| {
            let quoted = format!("\"{name}\"");
            let field = format!("    {name}: str = ");
            WORKER.iter().any(|file| file.contains(&quoted) || file.contains(&field))
        };
        // The pods get the flags in the form in which the master parses them.
        let words: Vec<String> = told.iter().map(|(name, of)| format!("--{name}={of}")).collect();
        let again = Values::of_pairs(form, &words).expect("flags");
        let training = crate::master::config(form, &again).expect("a training");
        let place = crate::master::Place::find(|_| Some("h:1".to_owned())).expect("a place");
        crate::master::server(0, &training, &place, &again);
        let read: BTreeSet<String> = read.union(&again.read()).cloned().collect();
        for flag in form.tables().iter().flat_map(|table| table.iter()) {
            let is_read = flag.means != Means::Published
                || read.contains(flag.name)
                // It selects the destination of the request.
                || flag.name == "yaml"
                || by_worker(flag.name);
            assert!(is_read, "{form:?}: --{} is taken and nothing reads it", flag.name);
        }
    }
}

#[test]
fn every_flag_has_help_and_a_default_of_its_own_form() {
    for form in [Form::Seed, Form::Train, Form::Evaluate, Form::Predict] {
        let mut names = BTreeSet::new();
        for flag in form.tables().iter().flat_map(|table| table.iter()) {
            assert!(names.insert(flag.name), "{} is there twice", flag.name);
            assert!(!flag.help.is_empty() && !flag.help.ends_with('.'), "{}", flag.name);
            let default = flag.default.filter(|text| !text.is_empty());
            let checked = default.map_or(Ok(String::new()), |text| flag.takes.check(text));
            assert!(checked.is_ok(), "{}: {checked:?}", flag.name);
        }
    }
    let help = tree().render_help().to_string();
    assert!(help.starts_with("Elastic training jobs by"), "{help}");
    assert!(help.contains("elasticdl --job_name=NAME") && help.contains("completion"), "{help}");
    assert!(flat().render_help().to_string().starts_with("Train a model"));
    tree().debug_assert();
    flat().debug_assert();
}

#[test]
fn flags_of_training_are_taken_where_nothing_is_trained_and_said() {
    let line = "--job_name=j --checkpoint_dir_for_init=/c";
    for command in [
        format!("evaluate {line} --validation_data=/v"),
        format!("predict {line} --prediction_data=/p"),
    ] {
        let own = job(&command).1;
        for flag in TRAIN.iter().filter(|flag| !own.iter().any(|(name, _)| name == flag.name)) {
            let value = match flag.takes {
                Takes::Positive | Takes::Count | Takes::Integer => "=1",
                Takes::Switch => "",
                Takes::OneOf(words) => &format!("={}", words[0]),
                _ => "=x",
            };
            let notes = job(&format!("{command} --{}{value}", flag.name)).2;
            assert_eq!(notes.len(), 1, "{command} --{}", flag.name);
        }
    }
    let help = tree().find_subcommand_mut("evaluate").unwrap().render_help().to_string();
    assert!(!help.contains("--grads_to_wait"), "{help}");
}

#[test]
fn clean_has_nothing_to_remove() {
    let Parsed { asked, notes, .. } =
        parsed("clean --docker_image_repository=gcr.io/x --all").unwrap();
    assert!(matches!(asked, Invocation::Clean) && notes.len() == 2, "{notes:?}");
}
