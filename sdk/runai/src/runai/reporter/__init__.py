"""Metrics of a training to a Prometheus push gateway.

Owns: pushing, in a thread of its own, so that a slow gateway does not slow the training. Does not
know about: frameworks. The gateway is in the variable `reporterGatewayURL`, the group is the pod
(`podUUID`). After three failures in a row nothing more is pushed; the training goes on.
"""

import os
import queue
import sys
import threading
import urllib.parse
import urllib.request

_FAILURES_MAX = 3
# As published: dashboards read these.
_METRIC = "reporter_push_gateway_metric"
_PARAMETER = "reporter_push_gateway_parameter"
_JOB = "reporter_pod_info"


def _quote(value):
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _name(name):
    return "".join(one if one.isascii() and (one.isalnum() or one == "_") else "_" for one in name)


class Reporter:
    """Pushes in the background; use it in a `with` statement, or call `finish` at the end."""

    def __init__(self):
        gateway = os.environ.get("reporterGatewayURL", "")
        pod = os.environ.get("podUUID") or os.environ.get("POD_UUID", "")
        self._url = None
        if gateway and pod:
            gateway = gateway if "://" in gateway else f"http://{gateway}"
            group = "/".join(urllib.parse.quote(part, safe="") for part in (_JOB, "podUUID", pod))
            self._url = f"{gateway.rstrip('/')}/metrics/job/{group}"
        self._queue = queue.Queue()
        self._thread = None

    def start(self, daemon=True):
        """Begins to push."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="reporter", daemon=daemon)
            self._thread.start()

    def _run(self):
        failures = 0
        while True:
            text = self._queue.get()
            if text is None:
                return
            if self._url is None or failures >= _FAILURES_MAX:
                continue
            try:
                request = urllib.request.Request(self._url, text.encode(), method="POST")
                urllib.request.urlopen(request, timeout=5).close()
                failures = 0
            except OSError as error:
                failures += 1
                if failures == _FAILURES_MAX:
                    print(f"runai.reporter: no more is pushed: {error}", file=sys.stderr)

    def _push(self, gauge, labels, value):
        self.start()
        shown = ",".join(f'{name}="{_quote(label)}"' for name, label in labels.items())
        self._queue.put(f"# TYPE {gauge} gauge\n{gauge}{{{shown}}} {value}\n")

    def reportMetric(self, name, value):
        """A number that changes: accuracy, loss, epoch."""
        labels = {"metric_name": name, "push_gateway_type": "metric"}
        self._push(f"{_METRIC}_{_name(name)}", labels, float(value))

    def reportParameter(self, name, value):
        """Something that stays: the name of the optimizer, the size of a batch."""
        labels = {"param_name": name, "param_value": value, "push_gateway_type": "parameter"}
        self._push(f"{_PARAMETER}_{_name(name)}", labels, 1)

    def finish(self):
        """Pushes what waits, and ends; waits 30 seconds at most."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=30)
            self._thread = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.finish()


_shared = Reporter()


def reportMetric(name, value):
    """See `Reporter.reportMetric`."""
    _shared.reportMetric(name, value)


def reportParameter(name, value):
    """See `Reporter.reportParameter`."""
    _shared.reportParameter(name, value)


def finish():
    """See `Reporter.finish`."""
    _shared.finish()
