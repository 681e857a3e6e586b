"""Searches: where the hyperparameters of trials come from that start without any."""

from controllers.search.optuna_search import OptunaSearch as OptunaSearch
from controllers.search.spec import Condition as Condition
from controllers.search.spec import Dimension as Dimension
from controllers.search.spec import NumberRange as NumberRange
from controllers.search.spec import Options as Options
from controllers.search.spec import SearchSpec as SearchSpec
from controllers.search.spec import read_search as read_search

__all__ = ["Condition", "Dimension", "NumberRange", "Options", "OptunaSearch", "SearchSpec", "read_search"]
