"""Published reports of a worker about its memory and processor. Owns: refusing them when they are
called. Does not know about: processes."""

from elastane.refused import RefusedAttribute, all_refused

_MODULE = "elasticai_api.common.resource_monitor"
_WHY = "the server measures each pod itself: type runai describe job NAME, or leave the call out"
ResourceMonitor, get_process_cpu_percent, get_used_memory = all_refused(
    _MODULE, _WHY, "ResourceMonitor", "get_process_cpu_percent", "get_used_memory"
)


class GlobalResourceMonitor:
    """The reports of the process."""

    RESOURCE_MONITOR = RefusedAttribute(f"{_MODULE}.GlobalResourceMonitor.RESOURCE_MONITOR", _WHY)
