"""Settings of a job for a worker. Owns: the words of the settings, in each published spelling, and
loading model and data by them. Does not know about: tasks, parameter servers."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from . import contract, readers
from .contract import Contract, Names
from .protocol import messages as pb

_SPELLINGS = {
    "training_data": ("training_data", "training_data_dir", "train_data_dir"),
    "validation_data": ("validation_data", "evaluation_data", "evaluation_data_dir"),
    "prediction_data": ("prediction_data", "prediction_data_dir"),
}
# Earlier names of parts of a model.
_EARLIER_NAMES = {"feed": "dataset_fn"}
_MODES = {
    pb.JOB_KIND_TRAIN: contract.TRAINING,
    pb.JOB_KIND_EVALUATE: contract.EVALUATION,
    pb.JOB_KIND_PREDICT: contract.PREDICTION,
}


class SettingsError(ValueError):
    """Settings that this worker cannot work with."""


class Data(NamedTuple):
    """The readers of a job."""

    main: Any
    """Data to train on, predict for, or evaluate."""
    validation: Optional[Any]
    """Data that a training is measured with."""


class Settings:
    """The settings of a job, as the master has sent them."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self.arguments: Mapping[str, str] = dict(message.arguments)
        self.mode = _MODES.get(message.kind, contract.TRAINING)
        self.minibatch_size = int(message.minibatch_size)
        if self.minibatch_size < 1:
            raise SettingsError("minibatch_size is 0; it is at least 1")

    def get(self, name: str) -> str:
        """An argument, empty if it is not given."""
        for spelling in _SPELLINGS.get(name, (name,)):
            if self.arguments.get(spelling):
                return self.arguments[spelling]
        return ""

    def number(self, name: str, default: int) -> int:
        """An argument that is a whole number."""
        text = self.get(name)
        try:
            return int(text) if text else default
        except ValueError:
            raise SettingsError(f"{name} is {text!r}; it is a whole number") from None

    def names(self) -> Names:
        """Names of the parts of the model."""
        given: Dict[str, str] = {}
        for field in Names._fields:
            earlier = self.get(_EARLIER_NAMES.get(field, field))
            is_default = earlier == _EARLIER_NAMES.get(field)
            if self.get(field) and self.get(field) != Names._field_defaults[field]:
                given[field] = self.get(field)
            elif earlier and not is_default:
                given[field] = earlier
        return Names(**given)

    def load_model(self) -> Contract:
        """The model, by `model_file` or by `model_zoo` and `model_def`."""
        if self.get("model_file"):
            return contract.load(self.get("model_file"), None, self.names(), self.mode)
        if not self.get("model_def"):
            raise SettingsError("the job names no model: give --model_file, or --model_def")
        zoo = self.get("model_zoo") or "."
        return contract.load_definition(zoo, self.get("model_def"), self.names(), self.mode)

    def open_data(self, model: Contract) -> Data:
        """The readers of the data that this kind of job reads."""
        main = {
            contract.TRAINING: "training_data",
            contract.EVALUATION: "validation_data",
            contract.PREDICTION: "prediction_data",
        }[self.mode]
        if not self.get(main):
            raise SettingsError(f"the job has no --{main}")
        validation = self.mode == contract.TRAINING and self.get("validation_data")
        return Data(
            self._open(model, self.get(main)),
            self._open(model, self.get("validation_data")) if validation else None,
        )

    def _open(self, model: Contract, origin: str) -> Any:
        records_per_task = self.number("records_per_task", 0) or None
        return readers.open_reader(
            origin, self.get("data_reader_params"), model.custom_data_reader, records_per_task
        )


def shards(reader: Optional[Any]) -> List[Any]:
    """The shards of a reader as messages."""
    found = reader.create_shards() if reader is not None else []
    return [pb.Shard(name=one.name, start=one.start, count=one.count) for one in found]
