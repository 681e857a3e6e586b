"""A sweep ends before all its trials have, once a rule of its author holds: what runs is stopped, no other starts.

The sweep is over for good then, however its trials look later: those that are cut short may still report better values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import SkipValidation, TypeAdapter, ValidationError

from controllers.core.actions import Decision, Proposal, Stop
from controllers.core.model import Phase, Snapshot, Trial
from controllers.core.stop_rules import ENDED, NO_RULES, StopRules, Terminator
from controllers.policies.kit.enough import SweepCourse, come_to_values, course_after, holds_untold, why_enough
from controllers.policies.wrappers.wrapper import AroundOne

S = TypeVar("S")
LOOK_S: Final = 10.0
"""Seconds between two looks at what trials report, where nothing else brings one."""


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """Why a sweep was ended, and by which rules: under others it goes on."""

    rules: StopRules
    why: str


@dataclass(frozen=True, slots=True)
class KnownEnds:
    """What is remembered of sweeps by their names, whichever policy steers them: how they went, and which are over.

    ``looked_at`` is when the cores that trials hold were last counted, in seconds of the sweep's clock; None where none
    have to be.
    """

    courses: Mapping[str, SweepCourse] = field(default_factory=dict)
    over: Mapping[str, SweepEnd] = field(default_factory=dict)
    looked_at: float | None = None

    def judged_of(self, sweep: str) -> int:
        """Return how many trials of ``sweep`` its terminator has judged."""
        return self.courses.get(sweep, SweepCourse()).judged


@dataclass(frozen=True, slots=True)
class EnoughState(Generic[S]):
    """The state of the policy within, and what is ``known`` of the sweeps."""

    policy: S
    known: KnownEnds = field(default_factory=KnownEnds)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The part of a saved state that does not depend on the policy within."""

    known: KnownEnds = field(default_factory=KnownEnds)


_KEPT: Final = TypeAdapter(_Kept)


def _never(_rule: Terminator, _trials: Sequence[Trial]) -> str:
    return ""


class UntilEnough(AroundOne):
    """Ends each sweep of ``rules`` by the first of them that holds, and leaves the rest to ``policy``.

    Of a sweep that is over, every trial is stopped: one that runs saves and ends as a success that was cut short, and
    one that waits, for a place or for room, never starts. What ``policy`` wants for these trials is dropped; as it sees
    them, none of them waits for a place. Wraps the guards and what owners ask as well.
    """

    rules: Mapping[str, StopRules]
    """By the name of the sweep."""
    settles: SkipValidation[Callable[[Terminator, Sequence[Trial]], str]] = _never
    """Returns why a terminator would end the search of a sweep with these trials, empty while it would not. Pure."""

    @property
    def state_type(self) -> type[EnoughState[Any]]:
        """Type of the state."""
        inner = self.policy.state_type
        return EnoughState[inner]  # type: ignore[valid-type]  # known at run time only

    def initial(self) -> EnoughState[Any]:
        """Return the state before the first decision."""
        return EnoughState(self.policy.initial())

    def after_another(self, text: str) -> EnoughState[Any]:
        """Return the state to begin with after another policy, whose saved state is ``text``."""
        try:
            return replace(self.initial(), known=_KEPT.validate_json(text).known)
        except ValidationError:
            return self.initial()

    def decide(self, snapshot: Snapshot, state: EnoughState[Any]) -> Decision[EnoughState[Any]]:
        """Look whether a sweep is over, then ask the policy within about the others."""
        known = self._looked(snapshot, state.known)
        ours = [trial for trial in snapshot.unended if trial.sweep in known.over]
        wanted = self.policy.decide(_without_waiting(snapshot, ours) if ours else snapshot, state.policy)
        names = {trial.id for trial in ours}
        theirs = (proposal for proposal in wanted.proposals if proposal.action.trial not in names)
        stops = (_stop(trial, known.over[trial.sweep].why) for trial in ours if _can_be_stopped(trial))
        wake_at = [at for at in (wanted.wake_at, self._wake_at(snapshot, known)) if at is not None]
        return replace(
            wanted,
            state=EnoughState(wanted.state, known),
            proposals=(*stops, *theirs),
            wake_at=min(wake_at, default=None),
        )

    def _looked(self, snapshot: Snapshot, before: KnownEnds) -> KnownEnds:
        """Return what is known after a look at every sweep that is not over."""
        now, at = snapshot.now, before.looked_at
        passed_s = 0.0 if at is None else max(0.0, now - at)
        over = {sweep: end for sweep, end in before.over.items() if end.rules == self.rules.get(sweep, NO_RULES)}
        courses, counting = dict(before.courses), False
        for sweep, rules in self.rules.items():
            if sweep in over:
                continue
            trials = [trial for trial in snapshot.trials if trial.sweep == sweep]
            counts = rules.cpu_hours is not None
            course = course_after(courses.get(sweep, SweepCourse()), now, trials, passed_s if counts else None)
            came = 0 if rules.terminator is None else len(come_to_values(trials))
            courses[sweep] = replace(course, judged=came)
            counting = counting or (counts and holds_untold(trials))
            why = why_enough(rules, now, trials, course)
            if not why and rules.terminator is not None and came > before.judged_of(sweep):
                why = self.settles(rules.terminator, trials)
            if why:
                over[sweep] = SweepEnd(rules, why)
        # A state that stays the same is not written again.
        return KnownEnds(courses, over, now if counting else None)

    def _wake_at(self, snapshot: Snapshot, known: KnownEnds) -> float | None:
        """Return when to look again at the sweeps that may end, None where there are none."""
        open_ = {trial.sweep for trial in snapshot.unended} & self.rules.keys() - known.over.keys()
        ends = [
            course.began_at + rules.after_s
            for sweep in open_
            if (rules := self.rules[sweep]).after_s is not None
            and (course := known.courses[sweep]).began_at is not None
        ]
        return min([snapshot.now + LOOK_S, *ends]) if open_ else None


def _can_be_stopped(trial: Trial) -> bool:
    """Whether a trial runs, or has yet to start; one that leaves is asked once it has."""
    return trial.steady or trial.phase in {Phase.PENDING, Phase.SUSPENDED}


def _stop(trial: Trial, why: str) -> Proposal:
    return Proposal(Stop(trial.id, f"{ENDED}{why}"), f"{ENDED}{why}")


def _without_waiting(snapshot: Snapshot, ours: list[Trial]) -> Snapshot:
    """Return ``snapshot`` as if none of ``ours`` waited for a place: nobody is to keep room for them."""
    # What owners ask is for the policy within, too.
    return replace(snapshot.withholding({trial.id for trial in ours}), asked=snapshot.asked)
