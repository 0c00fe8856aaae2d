"""Published name of `elasticdl.callbacks.SavedModelExporter`."""

from elasticdl.callbacks import SavedModelExporter

__all__ = ["SavedModelExporter"]
