"""Published layers. Owns: saying that there are none yet. Does not know about: embedding tables."""

raise ImportError(
    "elasticdl.layers.Embedding keeps its table on parameter servers, which elastane cannot do yet: "
    "use tf.keras.layers.Embedding, whose table is part of the model",
    name="elasticdl.layers",
)
