"""Trainings of kinds that the weights of ``promote`` were not trained on."""
