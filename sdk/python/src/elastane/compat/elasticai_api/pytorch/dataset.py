"""The published data set of images for PyTorch. Owns: taking its records from a service. Does not
know about: files (`torchvision`), shards (`elastane.indices`)."""

import sys
from typing import Any

from elastane.refused import refused

try:
    from torchvision.datasets import ImageFolder
    from torchvision.datasets.folder import IMG_EXTENSIONS
except ImportError:
    _NAME = "elasticai_api.pytorch.dataset.ElasticImageFolder"
    ImageFolder = refused(_NAME, "torchvision is not installed: type pip install torchvision")
    IMG_EXTENSIONS = ()


class ElasticImageFolder(ImageFolder):  # type: ignore[misc, valid-type]
    """The images of a folder; with a service, those that it gives to this worker."""

    _service: Any = None

    def set_data_shard_service(self, data_shard_service: Any) -> None:
        """The `RecordIndexService`, as of `create_elastic_controller(...)`."""
        self._service = data_shard_service

    def __len__(self) -> int:
        return sys.maxsize if self._service is not None else int(super().__len__())

    def __getitem__(self, index: int) -> Any:
        if self._service is not None:
            index = self._service.fetch_record_index()
        return super().__getitem__(index)


__all__ = ["ElasticImageFolder", "IMG_EXTENSIONS"]
