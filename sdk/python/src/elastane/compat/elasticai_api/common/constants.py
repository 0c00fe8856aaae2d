"""Published constants. Owns: the names and values. Does not know about: who uses them; nothing here does."""


class GRPC:
    """The largest messages, in bytes."""

    MAX_SEND_MESSAGE_LENGTH = 256 * 1024 * 1024
    MAX_RECEIVE_MESSAGE_LENGTH = 256 * 1024 * 1024


class TaskExecCounterKey:
    """Counters of a task."""

    FAIL_COUNT = "fail_count"


class HorovodEnv:
    """Variables of Horovod, which no loop of ours needs."""

    RENDEZVOUS_ADDR = "HOROVOD_GLOO_RENDEZVOUS_ADDR"
    RENDEZVOUS_PORT = "HOROVOD_GLOO_RENDEZVOUS_PORT"
    RANK = "HOROVOD_RANK"
    SIZE = "HOROVOD_SIZE"
    CONTROLLER = "HOROVOD_CONTROLLER"
    CPU_OPERATIONS = "HOROVOD_CPU_OPERATIONS"
    HOSTNAME = "HOROVOD_HOSTNAME"
    ELASTIC = "HOROVOD_ELASTIC"
    GLOO_TIMEOUT_SECONDS = "HOROVOD_GLOO_TIMEOUT_SECONDS"


class WorkerEnv:
    """Variables that each worker of a job has."""

    MASTER_ADDR = "MASTER_ADDR"
    WORKER_ID = "WORKER_ID"
    WORKER_NUM = "WORKER_NUM"


class TrainingLoopStatus:
    """States of a loop."""

    START = 1
    END = 2
    PENDING = 3


class DefaultDatasetName:
    """Names of data sets."""

    TRAINING = "_EDL_DEFAULT_TRAINING_DATA"
    EVALUATION = "_EDL_DEFAULT_EVALUATION_DATA"
