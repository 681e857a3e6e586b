"""One campaign: its world, its engine, and what reports on it. Made again whenever anything failed."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from mlflow.tracking import MlflowClient

from controllers.cluster.action_report import ActionReport, done_tags, recommended_tags
from controllers.cluster.campaign_world import BusyNodes, LeaderOnly, ReportedUsage
from controllers.cluster.earlier_reader import EarlierReader
from controllers.cluster.instruments import Instruments
from controllers.cluster.logs import fields
from controllers.cluster.shared_cluster import Seat, SharedCluster
from controllers.cluster.sweep_record import CampaignEnding, NoResultError, SweepRecord
from controllers.cluster.trial_runs import CampaignTrialRuns
from controllers.core import labels, trial_lists
from controllers.core.annotations import most_read_of
from controllers.core.asks import AsksInText
from controllers.core.bill import Bill, with_costs
from controllers.core.errors import SpeconError
from controllers.core.model import Phase
from controllers.core.objectives import ObjectiveWatch, missing_objectives, with_what_they_logged
from controllers.core.policy import Policy
from controllers.core.ports import StateStore, World
from controllers.core.results import RunResult
from controllers.driving.assembly import check_policy, goes_without_shares, guard_policy
from controllers.driving.clock import SweepClock
from controllers.driving.driver import Driver, RealBeats
from controllers.driving.drivers import SweepPorts, make_drivers
from controllers.driving.policy_change import PolicyChange
from controllers.driving.shared_world import AsksOfAll, SharedWorld
from controllers.driving.time_left import TimeLeft
from controllers.policies import Default, Pinned, WithoutShares
from controllers.policies.registry import parse_policy, spec_or_name
from controllers.search import SearchQueue
from controllers.tracking.access import MlflowAwayError
from controllers.tracking.background import BackgroundReader
from controllers.tracking.cost_board import CostBoard
from controllers.tracking.mlflow_source import MlflowSource, Scope
from controllers.tracking.sweep_runs import Steering
from controllers.tracking.tag_boards import ForecastBoard, TagBoard
from controllers.tracking.tags import TagWriter
from controllers.worlds.argo.meaning.view import Campaign
from controllers.worlds.argo.writing.runs import RunOf

_LOG = logging.getLogger(__name__)
_LAST_TAGS_S = 60.0
"""A run that MLflow refused a tag of is set aside for a quarter of this."""
_STOP_S = 10.0
_PARENT_S = 10.0
"""Seconds that a trial waits at most for the run of its sweep, under which its own is made."""


class FlushableStore(StateStore, Protocol):
    """A state store that may hold a state back for a while."""

    def flush(self) -> None:
        """Write what is waiting."""
        ...


class Worlds(Protocol):
    """Makes the world and the state store of a campaign."""

    def open(
        self, campaign: Campaign, now: Callable[[], float], run_of: RunOf, reports: ReportedUsage
    ) -> tuple[World, FlushableStore]:
        """Return both, as the cluster has them now.

        ``now`` is the sweep's clock, ``run_of`` gives trials' runs, ``reports`` is what the trials tell.
        """
        ...


@dataclass(frozen=True, slots=True)
class SharedServices:
    """What all campaigns share. ``epoch`` gives Unix seconds, ``interval`` is in seconds.

    ``why_no_shares`` says why the cluster changes no share of a running trial, empty where it does. ``cluster`` decides
    between them; without it, each sees the others as load alone.
    """

    worlds: Worlds
    client: MlflowClient
    reader: BackgroundReader
    tags: TagWriter
    searches: SearchQueue
    instruments: Instruments
    leading: Callable[[], bool]
    epoch: Callable[[], float]
    interval: float
    recommend: bool
    why_no_shares: Callable[[], str] = str
    cluster: SharedCluster | None = None


class CampaignRun:
    """Drives one campaign from wherever it stands.

    Raises:
        Exception: whatever the world could not do. Nothing is left running then.
    """

    def __init__(self, campaign: Campaign, services: SharedServices) -> None:
        self._campaign = campaign
        self._services = services
        self._about = {"namespace": campaign.namespace, "workflow": campaign.workflow, "policy": campaign.policy}
        # The sweep's clock begins with its workflow, so that every controller that takes it up counts the same time.
        self._clock = SweepClock(services.epoch() - campaign.created_epoch_s)
        self._usage = ReportedUsage()
        opened = services.worlds.open(campaign, self._clock.now, self._run_of, self._usage)
        self._world, self._store = opened
        self._left = TimeLeft()
        acts_on = LeaderOnly(self._world, services.leading, recommend=services.recommend)
        self._shared = SharedWorld(acts_on, self._left.of)
        self._heard: tuple[object, ...] = ()
        self._rules = campaign.stops
        self._beats = RealBeats(services.interval)
        self._watch = ObjectiveWatch()
        self._asks = AsksInText()
        self._earlier = EarlierReader(services.client, lambda: self._campaign, self._tell_learnt)
        self._over = False
        self._bill: Callable[[], Bill] = Bill
        self.phases = Counter[Phase]()
        # If anything fails in between, the threads that were started by then are ended.
        with ExitStack() as stack:
            self._steered_by = self._assemble(stack)
            self._driver = self._steered_by(self._change.policy)
            self._bill = lambda: self._driver.bill
            self._join_others(stack)
            self._stack = stack.pop_all()

    @property
    def without_objective(self) -> int:
        """How many trials log other metrics, but have not logged their objective for long."""
        return self._watch.without

    @property
    def done(self) -> bool:
        """Whether the workflow is over and its record complete, or another's."""
        return self._record.closed or (self._record.foreign and self._campaign.finished)

    def step(self, campaign: Campaign) -> None:
        """Take in what has happened, and tick the engine if it is time.

        Raises:
            Exception: whatever failed. Close the run then, and make another later.
        """
        self._campaign = campaign
        self._record.keep(campaign.sweeps)
        self._asks.take(campaign.annotations.get(labels.ANNOTATION_ASKED, ""))
        if self._over or self.done or not self._record.looked_up or not self._record.at_home:
            return
        changed = (
            self._changed_cluster(),
            self._changed_rules(),
            self._change.take(campaign.annotations.get(labels.ANNOTATION_SET_POLICY, "")),
        )
        if any(changed):
            # What the engine remembers goes on; what the policy before it remembered does not.
            self.keep_state()
            self._driver = self._steered_by(self._change.policy)
        now = self._clock.now()
        if self._searches.answered or self._earlier.news or self._heard_news():
            self._searches.answered = self._earlier.news = False
            self._driver.due_at = min(self._driver.due_at, self._beats.at(now))
        # To advance the world is to go on with moves, which are not for a controller that only recommends.
        if not self._services.recommend:
            self._driver.advance(now)
        self._over = self._world.finished
        # One more tick at the end, for the last phases to get into the record.
        if self._over or now >= self._driver.due_at:
            self._tick(now)
        if self._over:
            self._record.end(self._ending())

    def close(self) -> None:
        """End all threads; what waits for MLflow is written first, if it answers."""
        self._stack.close()

    def keep_state(self) -> None:
        """Save the engine's state before another controller takes over."""
        try:
            self._store.flush()
        except SpeconError as error:
            _LOG.warning("the newest state was not kept: %s", error, extra=fields(**self._about))

    def abandon(self) -> None:
        """End the record of a workflow that was deleted before its end."""
        self._record.end(CampaignEnding("KILLED"))

    def _tick(self, now: float) -> None:
        instruments = self._services.instruments
        self._driver.tick(now)
        instruments.ticks.inc()
        trials = self._world.trials()
        self.phases = Counter(trial.phase for trial in trials)
        for line in self._record.where.news(self._campaign.sweeps.values()):
            _LOG.warning("%s", line, extra=fields(**self._about))
        for trial, warning in self._watch.look(now, self._world, self._source.logged).items():
            _LOG.warning("%s", warning, extra=fields(**self._about, trial=trial))
        ended = self._clock.now()
        instruments.tick_duration.observe(ended - now)
        # A campaign takes half of the loop's time at most, however large it is.
        self._beats.rest_until = ended + (ended - now)

    @property
    def _lacking(self) -> int:
        """How many trials have begun and have no run that is known: their scripts may have named an experiment."""
        return self.phases.total() - self.phases[Phase.PENDING] - len(self._source.run_ids)

    def _ending(self) -> CampaignEnding:
        return CampaignEnding("FAILED" if self._world.failed else "FINISHED", self._result, self._world.objectives())

    def _result(self) -> RunResult:
        """Return the campaign's result. Ask MLflow once more for it, since trials log until their very end.

        Called off the loop, so that it may also wait for the last tags, of trials that were stopped at the very end.

        Raises:
            MlflowAwayError: MLflow does not answer.
            NoResultError: no trial was run.
        """
        if self._lacking > 0:
            self._record.where.look()
        samples = self._source.poll(whole=True)
        if self._source.away:
            message = "MLflow does not answer"
            raise MlflowAwayError(message)
        self._tags.settle(_LAST_TAGS_S)
        trials = tuple(self._world.results(samples))
        if not trials:
            message = "the workflow ended without having run a trial"
            raise NoResultError(message)
        logged = {self._world.short(trial): names for trial, names in self._source.logged.items()}
        trials = with_what_they_logged(trials, lambda trial: logged.get(trial.id, frozenset()))
        result = with_costs(RunResult(self._steering, trials), self._costs_so_far(), self._world.short)
        for line in missing_objectives(result).lines:
            _LOG.warning("%s", line, extra=fields(**self._about))
        return result

    def _assemble(self, stack: ExitStack) -> Callable[[Policy[Any]], Driver]:
        """Return what makes the driver of an engine under a policy."""
        services, campaign, world = self._services, self._campaign, self._world
        self._follow_in_mlflow(self._choose_policy())
        report, usage, record = ActionReport(services.instruments, self._about), self._usage, self._record
        background = stack.enter_context(services.reader.follow(self._source, campaign.namespace))
        stack.enter_context(services.reader.follow(self._earlier, campaign.namespace))
        self._searches = stack.enter_context(services.searches.searches(campaign.namespace))
        self._tags, foreseen = self._enter_tags(stack, report)
        first = first_nodes(campaign)
        ports = SweepPorts(
            world=world,
            acted_on=BusyNodes(self._shared, usage),
            acts_as=self._acts_as,
            source=background,
            store=self._store,
            clock=self._clock,
            beats=self._beats,
            guard=lambda policy: Pinned(
                policy=guard_policy(self._as_it_can(policy), campaign.means), first_nodes=first, short=world.short
            ),
            requests=AsksOfAll(self._asks, self._shared),
            search=self._searches,
            stops=lambda: self._campaign.stops,
            earlier=self._earlier.earlier,
            logs=(report,),
            observers=(self._tags, usage, self._left),
            cores_used=usage.cores_used,
            keep_events=record.append,
            keep_forecasts=record.append_forecasts,
            show_forecast=(foreseen.tell,),
            tell_silence=lambda trial, line: _LOG.warning("%s", line, extra=fields(**self._about, trial=trial)),
        )
        # Last of all: where anything failed before, nobody has to wait for what it writes.
        record.start(campaign.sweeps)
        stack.callback(record.stop, _STOP_S)
        return make_drivers(ports)

    def _join_others(self, stack: ExitStack) -> None:
        """Share the cluster with all other campaigns from now on."""
        cluster, campaign = self._services.cluster, self._campaign
        if cluster is None:
            return
        name = f"{campaign.namespace}/{campaign.workflow}/{campaign.uid}/{campaign.policy}"
        cluster.join(
            name,
            Seat(lambda: self._campaign, self._shared, lambda: self._change.policy, self._asks.asked),
        )
        stack.callback(cluster.leave, name)

    def _heard_news(self) -> bool:
        """Return whether the arbiter wants something else of this sweep than before."""
        part = self._shared.part
        told = () if part is None else (part.starts, part.held_back, part.gives_back)
        heard, self._heard = self._heard, told
        return told != heard

    def _acts_as(self, policy: Policy[Any]) -> Policy[Any]:
        """Return what the result is of: what only recommends changes nothing, and leaves the default scheduler."""
        return Default() if self._services.recommend else policy

    def _choose_policy(self) -> Policy[Any]:
        """Take up the policy that the workflow names, or the last that its owner chose; return the one it names."""
        policy, self._could = self._policy(), self._world.can
        self._change = PolicyChange(
            policy,
            self._could,
            "Argo",
            self._tell_change,
            self._services.why_no_shares(),
            several=lambda: self._campaign.several,
        )
        self._change.take(self._campaign.annotations.get(labels.ANNOTATION_SET_POLICY, ""))
        return policy

    def _changed_cluster(self) -> bool:
        """Return whether the cluster can do more or less than before, and choose the policy again where it can."""
        if self._world.can == self._could:
            return False
        self._choose_policy()
        return True

    def _changed_rules(self) -> bool:
        """Return whether sweeps have come whose rules were not known: Argo shows a template once it is used."""
        before, self._rules = self._rules, self._campaign.stops
        return before != self._rules

    def _as_it_can(self, policy: Policy[Any]) -> Policy[Any]:
        """Return ``policy`` as far as the cluster can carry it out, and say what it goes without."""
        if not goes_without_shares(policy, self._could):
            return policy
        why = self._services.why_no_shares()
        self._tell_change(f"policy {policy.name} runs without changing shares: {why}")
        return WithoutShares(policy=policy, why=why)

    def _follow_in_mlflow(self, policy: Policy[Any]) -> None:
        """Look up where the sweep stands in MLflow: its own record, and the runs of its trials."""
        services, campaign, world, acts = self._services, self._campaign, self._world, self._acts_as(policy)
        self._steering = acts.name
        steering = Steering(
            f"{campaign.workflow} · {acts.name}", acts.name, campaign.uid, campaign.namespace, spec_or_name(acts)
        )
        continues = "" if campaign.home_known else campaign.sweep_uid
        record = self._record = SweepRecord(services.client, steering, over=campaign.finished, continues=continues)

        def scope() -> Scope:
            return record.where.scope(lacking=self._lacking > 0)

        self._source = MlflowSource(
            services.client,
            scope,
            world.objectives,
            self._clock.from_epoch,
            epoch=self._clock.epoch,
            further=world.further_metrics,
        )
        self._trial_runs = CampaignTrialRuns(
            services.client,
            lambda sweep: record.wait_for(sweep, _PARENT_S),
            lambda: self._source.run_ids,
            world.objectives,
        )

    def _enter_tags(self, stack: ExitStack, report: ActionReport) -> tuple[TagBoard, ForecastBoard]:
        """Return what writes the tags of the trials, and those that say when all ends."""
        services, record, namespace = self._services, self._record, self._campaign.namespace
        parent = record.parent_of
        compose = recommended_tags(parent, report.recommended) if services.recommend else done_tags(parent)
        tags = services.tags.board(lambda: self._source.run_ids, compose, namespace)
        foreseen = services.tags.forecasts(
            lambda: self._source.run_ids, record.run_ids, self._clock.to_epoch, namespace
        )
        costs = CostBoard(
            # Written on another thread, which may be sooner than there is a driver.
            self._costs_so_far,
            lambda: self._source.run_ids,
            record.run_ids,
            lambda: self._over,
        )
        stack.enter_context(services.tags.costs(costs, namespace))
        return stack.enter_context(tags), stack.enter_context(foreseen)

    def _costs_so_far(self) -> Bill:
        """Return the bill. Another thread asks for it, maybe before there is a driver."""
        return self._bill()

    def _tell_change(self, line: str) -> None:
        _LOG.warning("%s", line, extra=fields(**self._about))

    def _tell_learnt(self, line: str) -> None:
        _LOG.info("%s", line, extra=fields(**self._about))

    def _run_of(self, trial: str, params: Mapping[str, Any], *, may_make: bool) -> str:
        """Return a trial's run. The world asks only once it advances or acts, when all the rest is there."""
        return self._trial_runs.of(trial, params, may_make=may_make)

    def _policy(self) -> Policy[Any]:
        """Return what steers the campaign; where its policy cannot be loaded, log why and leave its trials alone."""
        try:
            policy = parse_policy(self._campaign.policy)
            check_policy(policy, self._world.can, "Argo", self._services.why_no_shares())
        except SpeconError as error:
            message = "cannot load the sweep's policy; its trials are left alone: %s"
            _LOG.warning(message, error, extra=fields(**self._about))
            return Default()
        return policy


def first_nodes(campaign: Campaign) -> Mapping[str, str]:
    """Return the node of each trial's first attempt, by short id, as the workflow's owner wrote it down."""
    written = campaign.annotations.get(labels.ANNOTATION_FIRST_NODES)
    if not written:
        return {}
    nodes = trial_lists.read(written, most_read_of(labels.ANNOTATION_FIRST_NODES))
    if not nodes:
        about = fields(namespace=campaign.namespace, workflow=campaign.workflow)
        _LOG.warning("annotation %s is no JSON object of node names", labels.ANNOTATION_FIRST_NODES, extra=about)
    return nodes
