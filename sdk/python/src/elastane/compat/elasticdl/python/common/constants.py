"""Published constants. Owns: the modes of `feed`. Does not know about: who calls it."""

from elastane.contract import EVALUATION, PREDICTION, TRAINING


class Mode:
    """What the records are fed for."""

    TRAINING = TRAINING
    EVALUATION = EVALUATION
    PREDICTION = PREDICTION
