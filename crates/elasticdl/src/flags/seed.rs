//! The flags of the first form (May 2019): one program without commands, and one master that holds
//! the model.

use super::{BAD_RECORDS_MAX, GRADIENTS, LOG_LEVEL, LOG_LEVELS, POD_PRIORITY, PULL_POLICIES, TLS};
use crate::flag::{Flag, Takes};

/// The flags of the first form.
pub const SEED: &[Flag] = &[
    Flag::new("job_name", Takes::Text, "Name of the job; its pods and labels have it").required(),
    Flag::new("model_file", Takes::Text, "Python file with the model").required(),
    Flag::new(
        "image_base",
        Takes::Text,
        "Image of the pods; or the path of a Python interpreter that runs the workers",
    )
    .required(),
    Flag::new("repository", Takes::Text, "Registry the image was pushed to").nothing(
        "the push is refused: no image is made of the model file, so none goes to a registry; \
         the workers read the file",
    ),
    Flag::new("master_cpu_request", Takes::Millicores, "Cores the master asks for").or("100m"),
    Flag::new("master_cpu_limit", Takes::Millicores, "Most cores the master may use").or("100m"),
    Flag::new("master_memory_request", Takes::Memory, "Memory the master asks for").or("1024Mi"),
    Flag::new("master_memory_limit", Takes::Memory, "Most memory the master may use").or("1024Mi"),
    Flag::new("worker_cpu_request", Takes::Millicores, "Cores each worker asks for").or("1000m"),
    Flag::new("worker_cpu_limit", Takes::Millicores, "Most cores each worker may use").or("1000m"),
    Flag::new("worker_memory_request", Takes::Memory, "Memory each worker asks for").or("4096Mi"),
    Flag::new("worker_memory_limit", Takes::Memory, "Most memory each worker may use").or("4096Mi"),
    Flag::new("master_pod_priority", Takes::Text, "PriorityClass of the master")
        .nothing(POD_PRIORITY),
    Flag::new("worker_pod_priority", Takes::Priority, "PriorityClass of the workers, or a part"),
    Flag::new("volume", Takes::Volumes, "Folders that the pods find, as in the later forms"),
    Flag::new("volume_name", Takes::Text, "Name of the volume that --mount_path mounts"),
    Flag::new("mount_path", Takes::Text, "Where the claim `fileserver-claim` is mounted"),
    Flag::new("image_pull_policy", Takes::OneOf(PULL_POLICIES), "When the image is pulled")
        .or("Always"),
    Flag::new("train_data_dir", Takes::Text, "Folder of RecordIO files; each is a shard")
        .required(),
    Flag::new("record_per_task", Takes::Positive, "Records of each task").required(),
    Flag::new("num_epoch", Takes::Positive, "How often all records are trained").required(),
    Flag::new("grads_to_wait", Takes::Positive, "Gradients averaged to one update").required(),
    GRADIENTS,
    Flag::new("minibatch_size", Takes::Positive, "Records of each minibatch").required(),
    Flag::new("num_worker", Takes::Count, "Workers").or("0"),
    Flag::new("worker_image", Takes::Text, "Image of the workers")
        .nothing("the client says it to the master, and no person; --image_base is what counts"),
    Flag::new("codec_type", Takes::OneOf(&["bytes", "tf_example"]), "Encoding of the records")
        .or("bytes"),
    Flag::new("log_level", Takes::OneOf(LOG_LEVELS), LOG_LEVEL).or("WARNING"),
    BAD_RECORDS_MAX,
    TLS,
];
