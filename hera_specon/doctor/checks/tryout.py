"""What the try-out of a pod came to. What the pod says of itself is untrusted: read by type, and cut short."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from controllers.worlds.argo.calls.untrusted import at, text, whole
from hera_specon.doctor.checks.permissions import executor_fault
from hera_specon.doctor.findings import Finding, fault, ok, unknown, warning
from hera_specon.doctor.tryout.report import Resized, TryOut
from hera_specon.formatting import seconds

_GIB: Final = 2**30
_LEAST_FREE: Final = 2**30
_MOST_SKEW_S: Final = 30.0
_MOST: Final = 200
_FINE: Final = 200
_LOGIN: Final = frozenset({401, 403})
_FROM_A_COPY: Final = "install them in the image, from a copy of the repository"
_REPORTS: Final = "workflowtaskresults"


def check_tryout(came_to: TryOut, *, mlflow: bool) -> Iterator[Finding]:
    """Yield what a try-out showed; ``mlflow`` tells whether its pod looked for MLflow."""
    if came_to.refused:
        advice = "Nothing can be submitted until it takes workflows; its words say why, or submit one by hand."
        yield fault(
            "try-out",
            came_to.refused,
            advice,
            f"kubectl auth can-i create workflows.argoproj.io -n {came_to.namespace}",
        )
        return
    yield _check_run(came_to)
    if came_to.gated:
        yield ok("gate", "a scheduling gate held the pod until it was opened")
    yield from _check_executor(came_to)
    if came_to.report is not None or came_to.resized is Resized.DELETED:
        yield _check_resize(came_to)
    if came_to.report is not None:
        yield from _check_report(came_to.report, mlflow=mlflow)
    if came_to.left:
        advice = "Remove it by hand; Argo removes it too, some minutes after its end."
        name = came_to.left.partition(":")[0]
        yield warning(
            "clean-up",
            came_to.left,
            advice,
            f"kubectl delete {name.replace('workflow ', 'workflow/')} -n {came_to.namespace}",
        )


def _check_run(came_to: TryOut) -> Finding:
    subject, show = "try-out", f"kubectl get events -n {came_to.namespace}"
    if came_to.report is not None:
        return ok(subject, f"a pod ran in {seconds(came_to.seconds)}, by Argo")
    if came_to.resized is Resized.DELETED:
        advice = "Mend that first; what the pod would have told is not known."
        return unknown(subject, "the pod was deleted once it was resized", advice, show)
    if came_to.last_words or (came_to.pod and not came_to.waits and came_to.phase in {"Failed", "Error"}):
        what = came_to.last_words or came_to.message or "the pod's program told nothing"
        advice = "The image needs python3 for this check; trials need only what they run. See why it did not start."
        return unknown(subject, what, advice, show)
    if came_to.pod:
        advice = "Trials would wait alike: mend what it waits for, or give it longer with --timeout."
        return fault(subject, f"the pod did not run: {came_to.waits or 'no reason is given'}", advice, show)
    if came_to.phase:
        advice = "Argo makes no pod for it: its words say why."
        return fault(
            subject, f"Argo calls the workflow {came_to.phase}: {came_to.message or 'no reason given'}", advice, show
        )
    advice = "Is its workflow-controller alive, and does it look at this namespace?"
    what = f"Argo took no notice of the workflow in {seconds(came_to.seconds)}"
    return fault(subject, what, advice, "kubectl get pods -A | grep workflow-controller")


def _check_executor(came_to: TryOut) -> Iterator[Finding]:
    if _REPORTS in came_to.message or _REPORTS in came_to.last_words:
        yield executor_fault(
            came_to.namespace, came_to.account, f"Argo's executor could not report: {came_to.message[:_MOST]}"
        )
    elif came_to.report is not None and came_to.phase == "Succeeded":
        yield ok("executor", "Argo learned from the pod how it ended")
    elif came_to.report is not None:
        found = came_to.message[:_MOST] or f"the workflow is {came_to.phase or 'unseen'} though its pod ended well"
        yield executor_fault(came_to.namespace, came_to.account, f"Argo did not learn how the pod ended: {found}")


def _check_resize(came_to: TryOut) -> Finding:
    subject = "resize tried"
    words = f": {came_to.resize_words[:_MOST]}" if came_to.resize_words else ""
    show = f"kubectl auth can-i patch pods/resize -n {came_to.namespace}"
    if came_to.resized is Resized.DONE:
        shares = at(came_to.report, "share")
        seen = isinstance(shares, list) and len(shares) == 2 and shares[0] != shares[1]  # noqa: PLR2004 - before and after
        return ok(subject, "the pod was resized in place" + (", and its share of the CPU changed" if seen else ""))
    if came_to.resized is Resized.DELETED:
        advice = "Another controller removes pods that change, as Kueue does: choose a policy that resizes nothing."
        return warning(subject, "the pod was deleted once it was resized", advice, "kubectl get pods -A | grep kueue")
    if came_to.resized is Resized.REFUSED:
        advice = "No share of a trial changes until it is allowed; the words say what stands against it."
        return warning(subject, f"the API server refused it{words}", advice, show)
    if came_to.resized is Resized.INFEASIBLE:
        advice = "Its node cannot do that (a static CPU manager, or swap): ask the platform team for other nodes."
        return warning(subject, f"the node calls it infeasible{words}", advice, "kubectl get nodes -o wide")
    if came_to.resized is Resized.PENDING:
        advice = "Its node had no room in time: try again with a longer --timeout, or when the cluster is less full."
        return unknown(subject, f"it was asked for, and not done in time{words}", advice)
    advice = "You may not resize pods; the controller may, by its own role."
    return unknown(subject, "it was not tried", advice, show)


def _check_report(report: Mapping[str, Any], *, mlflow: bool) -> Iterator[Finding]:
    if mlflow:
        yield from _check_mlflow(report)
    yield from _check_state(report)
    yield _check_clock(report)
    yield from _check_self(report)


def _check_mlflow(report: Mapping[str, Any]) -> Iterator[Finding]:
    host, subject = text(report, "mlflow", "host", most=_MOST), "MLflow"
    if no_name := text(report, "mlflow", "dns", most=_MOST):
        advice = (
            "Name the server as pods know it, such as http://NAME.NAMESPACE:5000, in Sweep(mlflow_tracking_uri=...)."
        )
        yield fault("DNS", f"a pod finds no address of {host!r}: {no_name}", advice, "kubectl get services -A")
        return
    yield (
        ok("DNS", f"a pod finds the address of {host}")
        if host
        else unknown("DNS", "the trials' MLFLOW_TRACKING_URI names no host", "Give it with --mlflow-tracking-uri.")
    )
    status, login = whole(report, "mlflow", "status"), whole(report, "mlflow", "login")
    said = text(report, "mlflow", "said", most=_MOST)
    if error := text(report, "mlflow", "error", most=_MOST):
        advice = "See whether the server runs, and whether a network policy keeps pods from it."
        yield fault(
            subject, f"{host} does not answer a pod: {error}", advice, "kubectl get networkpolicies,services -A"
        )
    elif login in _LOGIN:
        advice = (
            "Give trials a login (MLFLOW_TRACKING_USERNAME and so on, by env_from= from a Secret), and where the words "
        )
        advice += "are of the Host header, let the server take this name (mlflow server --allowed-hosts)."
        yield fault(subject, f"{host} answers {login}: {said}", advice)
    elif login != _FINE:
        advice = "Is this the address of an MLflow server, without a path behind it that it does not know?"
        yield fault(subject, f"{host} answers {login} to a search for experiments: {said}", advice)
    else:
        version = text(report, "mlflow", "version", most=40) if status == _FINE else ""
        yield ok(subject, f"{host} answers a pod" + (f" (MLflow {version})" if version else ""))


def _check_state(report: Mapping[str, Any]) -> Iterator[Finding]:
    subject, where = "checkpoints", text(report, "state", "where", most=_MOST)
    if where == "mlflow":
        artifacts = whole(report, "mlflow", "artifacts")
        if artifacts == _FINE:
            yield ok(subject, "MLflow passes artifacts on")
        elif artifacts is not None:
            advice = "Start the server with --serve-artifacts, or keep checkpoints in a bucket."
            yield fault(subject, f"MLflow answers {artifacts} where artifacts are kept", advice)
        return
    if not where:
        return
    if missing := text(report, "state", "hooks", most=_MOST):
        advice = f"Trials keep checkpoints in a store by the hooks: {_FROM_A_COPY}."
        command = "pip install 'hera-specon/packages/hooks[stores]'"
        yield fault(subject, f"the image cannot reach {where}: {missing}", advice, command)
        return
    error = text(report, "state", "error", most=_MOST)
    if error or at(report, "state", "whole") is not True:
        user, group = whole(report, "self", "user"), whole(report, "self", "group")
        advice = (
            f"Let user {user} or group {group} write there; a bucket needs credentials that may read, write, list and "
        )
        advice += "delete (docs/how-to/submit-a-sweep.md)."
        yield fault(subject, f"a pod cannot write to {where}: {error or 'what it wrote was not there'}", advice)
        return
    if at(report, "state", "conditional") is False:
        advice = "Where two attempts write at once, points may be there twice: prefer a server that heeds them."
        yield warning(subject, f"{where} ignores conditional writes", advice)
        return
    free = whole(report, "state", "free")
    if free is not None and free < _LEAST_FREE:
        advice = "Make room, or checkpoints fail when it is full."
        yield warning(
            subject, f"{where} can be written to, but has only {free / _GIB:.2f} GiB left", advice, "specon clean"
        )
        return
    room = f", {free / _GIB:.0f} GiB free" if free is not None else ", and heeds conditional writes"
    yield ok(subject, f"a pod can write to {where}{room}")


def _check_clock(report: Mapping[str, Any]) -> Finding:
    ahead = at(report, "clock", "ahead")
    if isinstance(ahead, bool) or not isinstance(ahead, int | float):
        advice = "A pod could not ask the API server for its time; see that nodes keep theirs by NTP."
        return unknown("clock", text(report, "clock", "error", most=_MOST) or "not told", advice)
    if abs(ahead) > _MOST_SKEW_S:
        advice = "Have the nodes keep their clocks by NTP: tokens and signatures of stores depend on them."
        return warning(
            "clock",
            f"the node's clock is {abs(ahead):.0f} s {'behind' if ahead > 0 else 'ahead of'} the API server's",
            advice,
        )
    return ok("clock", f"within {max(1.0, abs(ahead)):.0f} s of the API server's")


def _check_self(report: Mapping[str, Any]) -> Iterator[Finding]:
    if error := text(report, "self", "error", most=_MOST):
        yield unknown("user", error, "The pod could not look at itself; run the check again.")
        return
    user, group = whole(report, "self", "user"), whole(report, "self", "group")
    hooks, python = text(report, "self", "hooks", most=40), text(report, "self", "python", most=40)
    listed = at(report, "self", "closed")
    closed = [one[:_MOST] for one in (listed if isinstance(listed, list) else []) if isinstance(one, str)][:5]
    who = f"user {user}, group {group}"
    if closed:
        advice = "Programs that write there fail: set working_dir= or mount an EmptyDirVolume there."
        yield warning("user", f"{who} cannot write to {', '.join(closed)}", advice)
    else:
        yield ok("user", f"{who} can write to the working folder and the one for temporary files")
    if hooks:
        yield ok("image", f"Python {python}, hera-specon-hooks {hooks}")
    else:
        advice = (
            "Trials that move begin again from nothing, unless the program itself saves and goes on. For the hooks, "
            f"{_FROM_A_COPY}."
        )
        command = "pip install hera-specon/packages/hooks"
        yield warning("image", f"Python {python} without the hooks", advice, command)
