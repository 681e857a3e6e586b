"""How much a trial weighs on its node, by how fast it still improves."""

from collections.abc import Mapping

from controllers.core.model import Category

WEIGHTS: Mapping[Category, float] = {Category.PROGRESSING: 2.0, Category.WATCHING: 1.5, Category.CONVERGED: 1.0}
"""Published weights (thesis ch. 6.2.1): what is still growing quickly counts most."""
