"""Published constants. Owns: the modes of `feed` and the other names that model files use; those of
MaxCompute, which is not read here, are names alone. Does not know about: who uses them."""

from elastane.contract import EVALUATION, PREDICTION, TRAINING
from elasticai_api.common.constants import GRPC, TaskExecCounterKey

__all__ = [
    "DistributionStrategy",
    "GRPC",
    "JobType",
    "MaxComputeConfig",
    "MetricsDictKey",
    "Mode",
    "ODPSConfig",
    "ReaderType",
    "SaveModelConfig",
    "TaskExecCounterKey",
]


class Mode:
    """Purpose for which records are fed."""

    TRAINING = TRAINING
    EVALUATION = EVALUATION
    PREDICTION = PREDICTION


class JobType:
    """Kinds of jobs."""

    TRAINING_ONLY = "training_only"
    EVALUATION_ONLY = "evaluation_only"
    PREDICTION_ONLY = "prediction_only"
    TRAINING_WITH_EVALUATION = "training_with_evaluation"


class DistributionStrategy:
    """Values of `--distribution_strategy`."""

    LOCAL = "Local"
    PARAMETER_SERVER = "ParameterServerStrategy"
    ALLREDUCE = "AllreduceStrategy"


class ReaderType:
    """Values of `reader_type` in `--data_reader_params`; tables of MaxCompute are refused."""

    CSV_READER = "CSV"
    ODPS_READER = "ODPS"
    RECORDIO_READER = "RecordIO"


class MetricsDictKey:
    """Keys of outputs and labels."""

    MODEL_OUTPUT = "output"
    LABEL = "label"


class SaveModelConfig:
    """Parameter of callbacks with the folder of `--output`."""

    SAVED_MODEL_PATH = "saved_model_path"


class MaxComputeConfig:
    """Variables of the environment that name a project of MaxCompute."""

    PROJECT_NAME = "MAXCOMPUTE_PROJECT"
    ACCESS_ID = "MAXCOMPUTE_AK"
    ACCESS_KEY = "MAXCOMPUTE_SK"
    ENDPOINT = "MAXCOMPUTE_ENDPOINT"
    TUNNEL_ENDPOINT = "MAXCOMPUTE_TUNNEL_ENDPOINT"


class ODPSConfig:
    """The earlier variables of the same."""

    PROJECT_NAME = "ODPS_PROJECT_NAME"
    ACCESS_ID = "ODPS_ACCESS_ID"
    ACCESS_KEY = "ODPS_ACCESS_KEY"
    ENDPOINT = "ODPS_ENDPOINT"
