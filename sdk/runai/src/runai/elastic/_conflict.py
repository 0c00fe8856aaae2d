"""The published library and this one have the same files. Owns: saying so. Does not know about: the
official REST client (`runapy`), which also imports as `runai` and gets along with this one."""


def check(metadata):
    """Refuses to go on where both are installed: which of two files is there is chance."""
    try:
        version = metadata.version("runai")
    except metadata.PackageNotFoundError:
        return
    raise ImportError(
        f"the packages runai {version} and elastane-runai are both installed and have the same "
        "files: pip uninstall runai elastane-runai, then install the one that you want",
        name="runai.elastic",
    )
