"""Optimizers of PyTorch that step once in so many calls.

Owns: counting calls; the count is in the first group of parameters, so that `state_dict` has it.
Does not know about: losses. Gradients are summed, as PyTorch and the published library do, which
makes an update `steps` times as large; `average=True` divides them by `steps` instead.
"""

import torch.optim

_STEPS, _CALLS, _AVERAGE = "runai_ga_steps", "runai_ga_calls", "runai_ga_average"


class _Accumulating:
    """Put before the class of an optimizer."""

    def step(self, closure=None):
        """Updates the parameters in the last call of a cycle; else only counts."""
        group = self.param_groups[0]
        group[_CALLS] += 1
        if group[_CALLS] < group[_STEPS]:
            return closure() if closure is not None else None
        group[_CALLS] = 0
        if group[_AVERAGE]:
            for parameters in self.param_groups:
                for parameter in parameters["params"]:
                    if parameter.grad is not None:
                        parameter.grad.div_(group[_STEPS])
        return super().step(closure)

    def zero_grad(self, *args, **kwargs):
        """Clears the gradients at the beginning of a cycle; in between they add up."""
        if self.param_groups[0][_CALLS] == 0:
            super().zero_grad(*args, **kwargs)


def Optimizer(optimizer, steps, average=False):
    """The same optimizer, which now steps in every `steps`-th call of `step`."""
    if int(steps) != steps or steps < 1:
        raise ValueError(f"steps is {steps}; it is a whole number of at least 1")
    plain = type(optimizer)
    if not isinstance(optimizer, _Accumulating):
        optimizer.__class__ = type(plain.__name__, (_Accumulating, plain), {})
    optimizer.param_groups[0].update({_STEPS: int(steps), _CALLS: 0, _AVERAGE: average})
    return optimizer


def _wrapped(plain):
    def make(steps, *args, average=False, **kwargs):
        return Optimizer(plain(*args, **kwargs), steps, average)

    make.__name__ = plain.__name__
    make.__doc__ = f"`torch.optim.{plain.__name__}` that steps in every `steps`-th call."
    return make


Adadelta = _wrapped(torch.optim.Adadelta)
Adagrad = _wrapped(torch.optim.Adagrad)
Adam = _wrapped(torch.optim.Adam)
AdamW = _wrapped(torch.optim.AdamW)
Adamax = _wrapped(torch.optim.Adamax)
ASGD = _wrapped(torch.optim.ASGD)
SGD = _wrapped(torch.optim.SGD)
Rprop = _wrapped(torch.optim.Rprop)
RMSprop = _wrapped(torch.optim.RMSprop)
