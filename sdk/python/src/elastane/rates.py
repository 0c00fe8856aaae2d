"""The learning rate of a global minibatch that changes its size. Owns: the rules. Does not know about:
optimizers, and why the size changes."""

from __future__ import annotations

import math

#: How a learning rate follows the size of the global minibatch.
RULES = ("linear", "sqrt", "constant")


def scaled_rate(rate: float, times: float, rule: str = "linear") -> float:
    """The learning rate for a global minibatch `times` as large as the one that `rate` is for.

    `times` is the number of workers (or of accumulated steps) whose gradients are averaged to one
    update, where each keeps its own minibatch; or 1 where the global minibatch stays as it is.

    ::

        for group in optimizer.param_groups:
            group["lr"] = elastane.scaled_rate(0.01, world_size)

    Args:
        rate: learning rate of one worker alone, above 0.
        times: size of the global minibatch in those of one worker, above 0; it need not be whole.
        rule: `"linear"`: `rate * times`, which is usual for SGD; `"sqrt"`: `rate * sqrt(times)`, which is
            usual for Adam; `"constant"`: `rate`.

    Raises:
        ValueError: for a rule that is not known, or a number that is not above 0.
    """
    for name, value in (("rate", rate), ("times", times)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} is {value!r}; it is a number above 0")
    if rule == "linear":
        return rate * times
    if rule == "sqrt":
        return rate * math.sqrt(times)
    if rule == "constant":
        return rate
    raise ValueError(f"no rule {rule!r}; there are {', '.join(RULES)}")


__all__ = ["RULES", "scaled_rate"]
