"""Published callbacks. Owns: the learning rate by version. Does not know about: any framework."""

from typing import Any, Callable


class LearningRateScheduler:
    """The learning rate of a step is `schedule(version)`, of the version that it starts at."""

    by_version = True

    def __init__(self, schedule: Callable[[int], float]) -> None:
        if not callable(schedule):
            raise TypeError("LearningRateScheduler takes a function of the version of the model")
        self.schedule = schedule

    def set_model(self, model: Any) -> None:
        """Nothing: the rate goes to the parameter server with each step."""
