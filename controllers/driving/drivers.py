"""What makes the drivers of one sweep, under one policy after another: the same in every world of real time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.core.earlier import NOTHING_EARLIER, Earlier
from controllers.core.forecast import Forecast
from controllers.core.model import TrialId
from controllers.core.policy import Policy
from controllers.core.ports import ActionLog, MetricSource, Observer, Requests, Search, StateStore, World
from controllers.core.stop_rules import StopRules
from controllers.driving.assembly import assemble
from controllers.driving.clock import SweepClock
from controllers.driving.driver import Beats, Driver
from controllers.forecast.forecaster import Forecaster
from controllers.record.forecasts import ForecastRecorder, ToldForecast
from controllers.record.recorder import Recorder
from controllers.record.silence import SilenceWatch
from controllers.record.timeline import TimelineEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPorts:
    """What all drivers of a sweep share.

    Attributes:
        world: Where its trials run.
        source: Their metrics.
        store: What outlives this process.
        clock: The sweep's clock.
        beats: When an engine may be ticked.
        guard: Wraps a policy in what keeps it from harm.
        requests: What owners ask of their trials.
        logs: Told of each action that was wanted.
        observers: Told of each tick, before the record is.
        screens: Told of each tick after the record and the forecast.
        cores_used: Tells the cores that each running trial used of late.
        keep_events: Adds to the timeline.
        keep_forecasts: Adds to the record of forecasts.
        show_forecast: Each gets every forecast.
        tell_silence: Gets a trial that says nothing, and a line for people.
        search: Finds hyperparameters that are left to a search; without it, they are looked for at once.
        stops: Tells when each sweep ends before all its trials have, by its name.
        earlier: Tells what was learnt before.
        acted_on: What engines see and act on, where that is not ``world`` as it is.
        acts_as: Gives the policy by which nodes are really shared, where that is not the one that decides.
    """

    world: World
    source: MetricSource
    store: StateStore
    clock: SweepClock
    beats: Beats
    guard: Callable[[Policy[Any]], Policy[Any]]
    requests: Requests
    logs: Sequence[ActionLog]
    observers: Sequence[Observer]
    screens: Sequence[Observer] = ()
    cores_used: Callable[[], Mapping[TrialId, float]]
    keep_events: Callable[[Sequence[TimelineEvent]], None]
    keep_forecasts: Callable[[Sequence[ToldForecast]], None]
    show_forecast: Sequence[Callable[[Forecast], None]]
    tell_silence: Callable[[TrialId, str], object]
    search: Search | None = None
    stops: Callable[[], Mapping[str, StopRules]] = dict
    earlier: Callable[[], Earlier] = lambda: NOTHING_EARLIER
    acted_on: World | None = None
    acts_as: Callable[[Policy[Any]], Policy[Any]] | None = None


def make_drivers(ports: SweepPorts) -> Callable[[Policy[Any]], Driver]:
    """Return what makes the driver of a sweep under a policy; all of them write one record."""
    world = ports.world
    recorder = Recorder(ports.keep_events, ports.cores_used, world.short)
    forecasts = ForecastRecorder(ports.keep_forecasts, world.short)
    silence = SilenceWatch(ports.tell_silence)

    def driver_under(policy: Policy[Any]) -> Driver:
        shown = policy if ports.acts_as is None else ports.acts_as(policy)
        forecaster = Forecaster(shown, world.to_come, (*ports.show_forecast, forecasts.tell))
        engine = assemble(
            policy,
            world if ports.acted_on is None else ports.acted_on,
            ports.source,
            ports.store,
            logs=ports.logs,
            observers=(*ports.observers, recorder, forecaster, silence, *ports.screens),
            guard=ports.guard,
            requests=ports.requests,
            search=ports.search,
            stops=ports.stops(),
            earlier=ports.earlier,
        )
        # The clock of the controller before may have been ahead of this one: nothing happened in the future.
        ports.clock.not_before(engine.saved_at)
        return Driver(engine, world, ports.beats, ports.clock.now())

    return driver_under
