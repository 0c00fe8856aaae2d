"""Reports of what Keras trains. Owns: the hook into `fit`, and which of its numbers are reported. Does not
know about: pushing."""

import keras

import runai.reporter

_fit = keras.Model.fit
_on = False
_DEFAULTS = dict(
    accuracy=True,
    loss=True,
    learning_rate=True,
    epoch=True,
    step=True,
    batch_size=True,
    overall_epochs=True,
    optimizer_name=True,
    number_of_layers=True,
    loss_method=False,
    epsilon=False,
)


def _chosen(switches):
    unknown = sorted(set(switches) - set(_DEFAULTS))
    if unknown:
        raise TypeError(f"autolog has no switch {unknown[0]!r}; it has {', '.join(_DEFAULTS)}")
    return {name for name, is_on in {**_DEFAULTS, **switches}.items() if is_on}


class Callback(keras.callbacks.Callback):
    """Reports each batch and epoch, and what the model is trained with: what the switches of `autolog`
    say, and other metrics of the model at the end of each epoch."""

    def __init__(self, reporter=None, batch_size=None, **switches):
        super().__init__()
        self._reporter = reporter or runai.reporter
        self._batch_size = batch_size
        self._chosen = _chosen(switches)

    def _metric(self, name, value):
        if name in self._chosen:
            self._reporter.reportMetric(name, value)

    def _parameter(self, name, value):
        if name in self._chosen:
            self._reporter.reportParameter(name, value)

    def _of_optimizer(self, name):
        if hasattr(self.model.optimizer, name):
            self._parameter(name, float(getattr(self.model.optimizer, name)))

    def _of_logs(self, logs):
        logs = logs or {}
        # `acc` before Keras 2.3, and the name of the metric that `compile` chose.
        accuracy = next(
            (n for n in logs if n in ("acc", "accuracy") or n.endswith("_accuracy")), None
        )
        if accuracy is not None and not accuracy.startswith("val_"):
            self._metric("accuracy", logs[accuracy])
        if "loss" in logs:
            self._metric("loss", logs["loss"])

    def on_train_begin(self, logs=None):
        """What the model is trained with."""
        self._parameter("optimizer_name", type(self.model.optimizer).__name__)
        self._metric("number_of_layers", len(self.model.layers))
        self._metric("overall_epochs", self.params.get("epochs", 1))
        if self._batch_size:
            self._metric("batch_size", self._batch_size)
        loss = getattr(self.model, "loss", None)
        if loss is not None:
            self._parameter(
                "loss_method", loss if isinstance(loss, str) else getattr(loss, "name", loss)
            )
        self._of_optimizer("learning_rate")
        self._of_optimizer("epsilon")

    def on_train_batch_end(self, batch, logs=None):
        """The step, loss and accuracy."""
        self._metric("step", batch)
        self._of_logs(logs)

    def on_epoch_begin(self, epoch, logs=None):
        """The epoch."""
        self._metric("epoch", epoch)

    def on_epoch_end(self, epoch, logs=None):
        """The epoch and its metrics."""
        self._metric("epoch", epoch)
        self._of_optimizer("learning_rate")
        self._of_logs(logs)
        for name, value in (logs or {}).items():
            if name not in ("loss", "acc", "accuracy"):
                self._reporter.reportMetric(name, value)


def autologged():
    """Whether every `fit` reports."""
    return _on


def autolog(reporter=None, **switches):
    """From now on every `fit` reports. Each number has a switch, such as `epsilon=True`."""
    global _on
    _chosen(switches)

    def fit(self, x=None, y=None, batch_size=None, *args, callbacks=None, **kwargs):
        own = Callback(reporter, batch_size, **switches)
        return _fit(self, x, y, batch_size, *args, callbacks=[*(callbacks or []), own], **kwargs)

    keras.Model.fit = fit
    _on = True


def disableAutoLog():
    """From now on `fit` does not report."""
    global _on
    keras.Model.fit = _fit
    _on = False


class Reporter(runai.reporter.Reporter):
    """A reporter that can have every `fit` report, until its `with` statement ends."""

    def __init__(self, autolog=False):
        super().__init__()
        self.autologged = False
        if autolog:
            self.autolog()

    def autolog(self, **switches):
        """Has every `fit` report here."""
        autolog(reporter=self, **switches)
        self.autologged = True

    def __exit__(self, *raised):
        if self.autologged:
            disableAutoLog()
            self.autologged = False
        super().__exit__(*raised)
