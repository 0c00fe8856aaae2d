"""Published layers that prepare features. Owns: their names. Does not know about: what they compute
(`elastane.preprocessing`)."""

from elastane.preprocessing import (
    ConcatenateWithOffset,
    Discretization,
    Hashing,
    IndexLookup,
    LogRound,
    Normalizer,
    RoundIdentity,
    SparseEmbedding,
    ToNumber,
    ToRagged,
    ToSparse,
)

# The tutorial's name of the layer.
Embedding = SparseEmbedding

__all__ = [
    "ConcatenateWithOffset",
    "Discretization",
    "Embedding",
    "Hashing",
    "IndexLookup",
    "LogRound",
    "Normalizer",
    "RoundIdentity",
    "SparseEmbedding",
    "ToNumber",
    "ToRagged",
    "ToSparse",
]
