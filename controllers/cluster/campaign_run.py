"""One campaign: its world, its engine, and all that is told of it. Built anew whenever anything went wrong."""

import json
import logging
import os.path
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from mlflow.tracking import MlflowClient

from controllers import labels
from controllers.clock import SweepClock
from controllers.cluster.hand import Hand, WatchedJournal, in_words
from controllers.cluster.instruments import Instruments
from controllers.cluster.logs import fields
from controllers.cluster.ports import Campaign, KeptJournal, World, Worlds
from controllers.cluster.reported_usage import ReportedUsage
from controllers.cluster.sweep_record import Ending, SweepRecord
from controllers.engine import Engine
from controllers.errors import SpeconError
from controllers.mlflow_board import TrialTags, trial_tags
from controllers.mlflow_source import BackgroundSource, MlflowSource, Scope
from controllers.model import Assessment, Phase, Trial, TrialId
from controllers.objective_watch import ObjectiveWatch
from controllers.policies import Default, Guarded, Pinned
from controllers.policies.base import Policy
from controllers.policies.registry import parse_policy
from controllers.recorder import Recorder
from controllers.results import RunResult
from controllers.sweep_checks import check_policy
