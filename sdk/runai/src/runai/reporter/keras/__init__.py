"""Reports of what Keras trains. Owns: the hook into `fit`. Does not know about: pushing."""

import keras

import runai.reporter

_fit = keras.Model.fit
_on = False


class Callback(keras.callbacks.Callback):
    """Reports the logs of each epoch, and what the model is trained with."""

    def __init__(self, reporter=None):
        super().__init__()
        self._reporter = reporter or runai.reporter

    def on_train_begin(self, logs=None):
        """Parameters."""
        reporter = self._reporter
        reporter.reportParameter("optimizer_name", type(self.model.optimizer).__name__)
        reporter.reportMetric("number_of_layers", len(self.model.layers))
        reporter.reportMetric("overall_epochs", self.params.get("epochs", 1))

    def on_epoch_end(self, epoch, logs=None):
        """Metrics."""
        self._reporter.reportMetric("epoch", epoch)
        for name, value in (logs or {}).items():
            self._reporter.reportMetric(name, value)


def autologged():
    """Whether every `fit` reports."""
    return _on


def autolog(reporter=None):
    """From now on every `fit` reports."""
    global _on

    def fit(self, *args, callbacks=None, **kwargs):
        return _fit(self, *args, callbacks=[*(callbacks or []), Callback(reporter)], **kwargs)

    keras.Model.fit = fit
    _on = True


def disableAutoLog():
    """From now on `fit` does not report."""
    global _on
    keras.Model.fit = _fit
    _on = False
