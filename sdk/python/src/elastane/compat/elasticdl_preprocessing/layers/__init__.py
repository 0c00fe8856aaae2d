"""Published layers that prepare features. Owns: their names, and refusing them when they are called. Does
not know about: what takes their place, Keras's own layers and `feed`."""

from elastane.refused import refused

_LAYERS = {
    "ConcatenateWithOffset": "add the offsets to the ids in feed, and take tf.keras.layers.Concatenate",
    "Discretization": "take tf.keras.layers.Discretization",
    "Hashing": "take tf.keras.layers.Hashing",
    "IndexLookup": "take tf.keras.layers.StringLookup",
    "LogRound": "take tf.round(tf.math.log(x)) in feed",
    "Normalizer": "take tf.keras.layers.Normalization",
    "RoundIdentity": "take tf.round in feed",
    "SparseEmbedding": "take elasticdl.layers.Embedding with combiner",
    "ToNumber": "take tf.strings.to_number in feed",
    "ToRagged": "take tf.RaggedTensor.from_tensor in feed",
    "ToSparse": "take tf.sparse.from_dense in feed",
}
globals().update(
    (name, refused(f"elasticdl_preprocessing.layers.{name}", instead))
    for name, instead in _LAYERS.items()
)
__all__ = list(_LAYERS)
