"""Searches: where the hyperparameters of trials come from that start without any."""

from controllers.search.cost import IN_A_CLUSTER as IN_A_CLUSTER
from controllers.search.cost import check_cost as check_cost
from controllers.search.earlier import what_is_learnt as what_is_learnt
from controllers.search.elsewhere import SearchesElsewhere as SearchesElsewhere
from controllers.search.elsewhere import SearchQueue as SearchQueue
from controllers.search.exploring import changing_names as changing_names
from controllers.search.exploring import explored as explored
from controllers.search.optuna_search import OptunaSearch as OptunaSearch
from controllers.search.spec import Condition as Condition
from controllers.search.spec import Dimension as Dimension
from controllers.search.spec import NumberRange as NumberRange
from controllers.search.spec import Options as Options
from controllers.search.spec import SearchSpec as SearchSpec
from controllers.search.spec import read_search as read_search
from controllers.search.terminator import why_no_terminator as why_no_terminator
from controllers.search.terminator import why_settled as why_settled

__all__ = [
    "IN_A_CLUSTER",
    "Condition",
    "Dimension",
    "NumberRange",
    "Options",
    "OptunaSearch",
    "SearchQueue",
    "SearchSpec",
    "SearchesElsewhere",
    "changing_names",
    "check_cost",
    "explored",
    "read_search",
    "what_is_learnt",
    "why_no_terminator",
    "why_settled",
]
