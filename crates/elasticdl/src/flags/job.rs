//! The flags of `train`, `evaluate` and `predict` (the final form).

use super::{
    BAD_RECORDS_MAX, GRADIENTS, LOG_LEVEL, LOG_LEVELS, POD_PRIORITY, PULL_POLICIES, STALENESS_MAX,
    TLS,
};
use crate::flag::{Flag, Takes};

/// Reason why a Kubernetes pod file is refused.
const NO_PODS: &str = "pods are not those of Kubernetes; say what they need with --envs, --volume \
                       and the requests of resources";
/// Place of the output of pods.
const OUTPUT: &str = "the output of every pod is kept by the server; `elasticdl logs` shows it";

/// Reason why no image is built from a folder of models.
const NO_IMAGE: &str = "no image is made of the models, which workers read where they are: nothing is asked of a \
                        Docker daemon, and nothing is pushed";
/// Schedule of evaluations.
const BY_VERSIONS: &str = "the model is measured every --evaluation_steps versions";
/// Evaluation and prediction have no epochs.
const ONCE: &str = "what is not trained is visited once";
const JOB_SERVICE: Flag =
    Flag::new("need_elasticdl_job_service", Takes::Switch, "Workers run the loop of ElasticDL")
        .or("false")
        .nothing("workers run the loop of ElasticDL unless --job_command says what they run");
const TASK_MANAGER: Flag =
    Flag::new("need_task_manager", Takes::Switch, "The master hands out tasks")
        .or("true")
        .nothing("the master always hands out the tasks");
const POD_MANAGER: Flag =
    Flag::new("need_pod_manager", Takes::Switch, "The master manages the pods")
        .or("true")
        .nothing("the scheduler of the server manages the pods");
const NUM_EPOCHS: Flag =
    Flag::new("num_epochs", Takes::Integer, "How often all records are visited").nothing(ONCE);

/// Kinds of workers that a later tutorial names: the workers of a job are alike.
const ALIKE: &str = "the workers of a job are alike, and each of them measures the model when it is \
                     its turn; --worker_resource_request and --worker_resource_limit apply to all";

/// Flags of all three commands.
pub const COMMON: &[Flag] = &[
    Flag::new("job_name", Takes::Text, "Name of the job; its pods and labels have it").required(),
    Flag::new("image_name", Takes::Text, "Image of the pods, or path of a Python").or(""),
    Flag::new("worker_image", Takes::Text, "Image of the workers; else that of --image_name")
        .or(""),
    Flag::new("image_base", Takes::Text, "--image_name under its earlier name"),
    Flag::new("ps_image", Takes::Text, "Image of the parameter servers")
        .nothing("parameter servers run in the image of --image_name"),
    Flag::new("num_evaluator", Takes::Count, "Workers that only measure the model").nothing(ALIKE),
    Flag::new("chief_resource_request", Takes::Resources, "What the first worker asks for")
        .nothing(ALIKE),
    Flag::new("chief_resource_limit", Takes::Resources, "Most the first worker may use")
        .nothing(ALIKE),
    Flag::new("chief_pod_priority", Takes::Text, "PriorityClass of the first worker")
        .nothing(ALIKE),
    Flag::new(
        "evaluator_resource_request",
        Takes::Resources,
        "What each measuring worker asks for",
    )
    .nothing(ALIKE),
    Flag::new("evaluator_resource_limit", Takes::Resources, "Most each measuring worker may use")
        .nothing(ALIKE),
    Flag::new("evaluator_pod_priority", Takes::Text, "PriorityClass of the measuring workers")
        .nothing(ALIKE),
    Flag::new("docker_image_repository", Takes::Text, "Registry that images are pushed to")
        .nothing(NO_IMAGE),
    Flag::new("docker_base_url", Takes::Text, "Socket of the Docker daemon").nothing(NO_IMAGE),
    Flag::new("docker_tlscert", Takes::Text, "Certificate for the daemon").nothing(NO_IMAGE),
    Flag::new("docker_tlskey", Takes::Text, "Key for the daemon").nothing(NO_IMAGE),
    Flag::new("namespace", Takes::Text, "Project of the job, `runai-PROJECT` or its name")
        .or("default"),
    Flag::new("master_resource_request", Takes::Resources, "What the master asks for")
        .or("cpu=0.1,memory=1024Mi"),
    Flag::new("master_resource_limit", Takes::Resources, "Most the master may use").or(""),
    Flag::new("worker_resource_request", Takes::Resources, "What each worker asks for")
        .or("cpu=1,memory=4096Mi"),
    Flag::new("worker_resource_limit", Takes::Resources, "Most each worker may use").or(""),
    Flag::new("ps_resource_request", Takes::Resources, "What each parameter server asks for")
        .or("cpu=1,memory=4096Mi"),
    Flag::new("ps_resource_limit", Takes::Resources, "Most each parameter server may use").or(""),
    Flag::new("num_workers", Takes::Count, "Workers").or("2"),
    Flag::new("num_ps_pods", Takes::Count, "Parameter servers; 0: the master holds the model")
        .or("0"),
    Flag::new("master_pod_priority", Takes::Text, "PriorityClass of the master")
        .or("")
        .nothing(POD_PRIORITY),
    Flag::new("worker_pod_priority", Takes::Priority, "PriorityClass of the workers, or a part")
        .or(""),
    Flag::new("ps_pod_priority", Takes::Text, "PriorityClass of the parameter servers")
        .or("")
        .nothing(POD_PRIORITY),
    Flag::new("volume", Takes::Volumes, "Folders that the pods find").or(""),
    Flag::new("image_pull_policy", Takes::OneOf(PULL_POLICIES), "When images are pulled")
        .or("Always"),
    Flag::new(
        "restart_policy",
        Takes::OneOf(&["Never", "OnFailure", "Always"]),
        "Whether a pod that fails starts again in its place",
    )
    .or("Never")
    .nothing(
        "a worker that fails starts again as --relaunch_on_worker_failure says, and a master or \
         parameter server that is killed always does",
    ),
    Flag::new("envs", Takes::Variables, "Variables of all pods").or(""),
    Flag::new(
        "checkpoint_credential",
        Takes::Text,
        "Credential of the kind access-key for checkpoints in a bucket (s3://BUCKET/FOLDER)",
    )
    .or(""),
    Flag::new("populate_env_names", Takes::Text, "Variables of the master for the others")
        .or("")
        .nothing("all pods get the variables of --envs, and none gets another's"),
    Flag::new("extra_pypi_index", Takes::Text, "Index of packages")
        .or("")
        .nothing("it is a flag of `zoo init`"),
    Flag::new("num_minibatches_per_task", Takes::Positive, "Minibatches of each task").or("8"),
    Flag::new("cluster_spec", Takes::Text, "Python file about pods").or("").refused(NO_PODS),
    Flag::new("cluster_spec_json", Takes::Text, "JSON about pods").or("").refused(NO_PODS),
    Flag::new("yaml", Takes::Text, "Write the request into this file, and submit nothing").or(""),
    Flag::new("force_use_kube_config_file", Takes::Switch, "Which cluster is asked")
        .or("false")
        .nothing("there is no file of kubectl's; the server is found as runai finds it"),
    Flag::new("aux_params", Takes::Text, "disable_relaunch=true: workers begin once only").or(""),
    Flag::new("log_file_path", Takes::Text, "File of the output of every pod")
        .or("")
        .nothing(OUTPUT),
    Flag::new("minibatch_size", Takes::Positive, "Records of each minibatch").or("64"),
    Flag::new("model_zoo", Takes::Text, "Folder with the models").or(""),
    Flag::new("model_def", Takes::Text, "Model: path below the zoo, with dots, and its symbol")
        .or(""),
    Flag::new("feed", Takes::Text, "Symbol that turns records into features and labels").or("feed"),
    Flag::new("dataset_fn", Takes::Text, "--feed under the name that it had until October 2020"),
    Flag::new("model_params", Takes::Text, "Arguments of the model's function")
        .refused("a model is made without arguments: give its parameters defaults in the file"),
    Flag::new("loss", Takes::Text, "Symbol of the loss").or("loss"),
    Flag::new("optimizer", Takes::Text, "Symbol of the optimizer").or("optimizer"),
    Flag::new("callbacks", Takes::Text, "Symbol of the callbacks").or("callbacks"),
    Flag::new("eval_metrics_fn", Takes::Text, "Symbol of the metrics").or("eval_metrics_fn"),
    Flag::new("custom_data_reader", Takes::Text, "Symbol of a reader of data")
        .or("custom_data_reader"),
    Flag::new("get_model_steps", Takes::Positive, "Minibatches between two pulls of the model")
        .or("1"),
    Flag::new("data_reader_params", Takes::Text, "Parameters of the reader, a=1; b=2").or(""),
    Flag::new(
        "distribution_strategy",
        Takes::OneOf(&["", "Local", "ParameterServerStrategy", "AllreduceStrategy"]),
        "How the workers share the model",
    )
    .or("ParameterServerStrategy"),
    Flag::new(
        "checkpoint_steps",
        Takes::Count,
        "Versions between two checkpoints; 0: only when the job ends or is stopped",
    )
    .or("50"),
    Flag::new("checkpoint_dir", Takes::Text, "Folder of the checkpoints, or s3://BUCKET/FOLDER")
        .or(""),
    Flag::new("keep_checkpoint_max", Takes::Count, "Checkpoints that are kept; 0: all").or("0"),
    BAD_RECORDS_MAX,
    TLS,
    Flag::new("output", Takes::Text, "Folder of the trained model").or(""),
    Flag::new("log_level", Takes::OneOf(LOG_LEVELS), LOG_LEVEL).or("INFO"),
];

/// Flags of `train` only.
pub const TRAIN: &[Flag] = &[
    Flag::new("num_epochs", Takes::Integer, "How often all records are trained; 0: for ever")
        .or("1"),
    Flag::new("grads_to_wait", Takes::Positive, "Gradients averaged to one update").or("1"),
    Flag::new("training_data", Takes::Text, "Folder of RecordIO files, or a .csv file").or(""),
    Flag::new("validation_data", Takes::Text, "Data that the model is measured with").or(""),
    Flag::new("evaluation_steps", Takes::Count, "Versions between two evaluations; 0: none")
        .or("0"),
    Flag::new(
        "checkpoint_dir_for_init",
        Takes::Text,
        "Checkpoint that the model begins from, version-N, or their folder: the newest",
    )
    .or(""),
    Flag::new("sync_version_tolerance", Takes::Count, "How old a gradient may be, in versions")
        .or("0"),
    GRADIENTS,
    Flag::new("log_loss_steps", Takes::Positive, "Steps between two lines about the loss")
        .or("100"),
    Flag::new("max_step", Takes::Count, "Batches after which no task is made; 0: no bound").or("0"),
    Flag::new("use_async", Takes::Switch, "Apply each gradient at once").or("false"),
    STALENESS_MAX,
    Flag::new("lr_staleness_modulation", Takes::Switch, "Old gradients count less").or("false"),
    JOB_SERVICE,
    TASK_MANAGER,
    POD_MANAGER,
    Flag::new("evaluation_start_delay_secs", Takes::Count, "When the model is measured first")
        .nothing(BY_VERSIONS),
    Flag::new("evaluation_throttle_secs", Takes::Count, "Seconds between two evaluations")
        .nothing(BY_VERSIONS),
    Flag::new("tensorboard_log_dir", Takes::Text, "Folder of a TensorBoard")
        .nothing("loss and metrics are in `elasticdl logs`, and in the metrics of the server"),
    Flag::new("task_fault_tolerance", Takes::Switch, "Tasks of dead workers are done again")
        .or("true")
        .nothing("tasks of dead workers are always done again"),
    Flag::new(
        "relaunch_timeout_worker",
        Takes::Switch,
        "Replace a worker that says nothing of its task for 5 minutes and 3 times the longest task",
    )
    .or("false"),
    Flag::new("job_command", Takes::Text, "Command line that workers run").or(""),
    Flag::new("need_tf_config", Takes::Switch, "Set TF_CONFIG").or("false").refused(
        "TF_CONFIG names all workers for good, and they change; `runai training tensorflow submit` \
         has it",
    ),
    Flag::new("relaunch_on_worker_failure", Takes::Count, "Relaunches of a worker that failed")
        .or("1"),
];

/// Flags of `evaluate` only.
pub const EVALUATE: &[Flag] = &[
    Flag::new("validation_data", Takes::Text, "Data that the model is measured with").required(),
    JOB_SERVICE,
    TASK_MANAGER,
    POD_MANAGER,
    NUM_EPOCHS,
    Flag::new(
        "checkpoint_dir_for_init",
        Takes::Text,
        "Checkpoint of the model, version-N, or their folder: the newest",
    )
    .required(),
];

/// Flags of `predict` only.
pub const PREDICT: &[Flag] = &[
    Flag::new("prediction_data", Takes::Text, "Data that the model is applied to").required(),
    JOB_SERVICE,
    TASK_MANAGER,
    POD_MANAGER,
    NUM_EPOCHS,
    Flag::new(
        "checkpoint_dir_for_init",
        Takes::Text,
        "Checkpoint of the model, version-N, or their folder: the newest",
    )
    .required(),
    Flag::new("prediction_outputs_processor", Takes::Text, "Symbol that gets the predictions")
        .or("PredictionOutputsProcessor"),
];
