"""The jobs in TensorFlow, through Keras."""
