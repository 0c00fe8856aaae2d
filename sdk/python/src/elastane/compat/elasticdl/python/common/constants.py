"""Published constants. Owns: the modes of `feed`, and names of variables of MaxCompute, which is not
read here. Does not know about: who uses them."""

from elastane.contract import EVALUATION, PREDICTION, TRAINING


class Mode:
    """Purpose for which records are fed."""

    TRAINING = TRAINING
    EVALUATION = EVALUATION
    PREDICTION = PREDICTION


class MaxComputeConfig:
    """Variables of the environment that name a project of MaxCompute."""

    PROJECT_NAME = "MAXCOMPUTE_PROJECT"
    ACCESS_ID = "MAXCOMPUTE_AK"
    ACCESS_KEY = "MAXCOMPUTE_SK"
    ENDPOINT = "MAXCOMPUTE_ENDPOINT"
    TUNNEL_ENDPOINT = "MAXCOMPUTE_TUNNEL_ENDPOINT"
