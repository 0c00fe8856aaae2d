"""Published names of the variables of the environment with statistics of features. Owns: the names.
Does not know about: who reads them (`utils.analyzer_utils`)."""


class AnalysisEnvTemplate:
    """Names of variables; `{}` is the name of a feature."""

    MIN_ENV = "_{}_min"
    MAX_ENV = "_{}_max"
    AVG_ENV = "_{}_avg"
    STDDEV_ENV = "_{}_stddev"
    BUCKET_BOUNDARIES_ENV = "_{}_boundaries"
    DISTINCT_COUNT_ENV = "_{}_distinct_count"
    VOCABULARY_ENV = "_{}_vocab"
