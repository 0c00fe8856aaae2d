"""Published modules for training loops of one's own. Owns: saying that they are not here yet. Does
not know about: the protocol that they would speak."""

raise ImportError(
    "elasticai_api is for training loops of one's own (--job_command), which elastane does not run "
    "yet: write a model module with custom_model, feed, loss and optimizer",
    name="elasticai_api",
)
