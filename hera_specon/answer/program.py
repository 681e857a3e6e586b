"""Tells what a sweep came to: reads its runs out of MLflow, and writes each output into a file of its own.

This is the whole program of a sweep's last step, put into its template as a script. It runs in the image of the trials,
so it needs nothing but a Python of 3.8 or later, and imports nothing of ours. All that it is told stands in variables.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

UNENDED_S = 60.0
"""Seconds for which runs that have not ended are waited for: a controller may be about to end them."""
POINTS_S = 300.0
"""Seconds for asking which values were logged last: of trials whose turn does not come, the greatest step counts."""
UNSEEN_S = 10.0
"""Seconds for which runs are waited for that are not there: trials that were stopped before they began have none."""
AWAY_S = 300.0
"""Seconds for which MLflow may be away."""
MOST_BYTES = 64 * 2**10
"""Of a table: Argo keeps outputs in the workflow, which may have a megabyte or so in all."""
MOST_ANSWER, MOST_ERROR = 2**26, 2**16
"""Bytes of an answer."""
MOST_DEPTH = 100
"""Levels of objects and lists within each other."""
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*\\?"?', re.DOTALL)
STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\x00\x00")
MOST_TEXT = 500
"""Characters of a hyperparameter's value."""
TAG = "{" * 2
"""What Argo's tags begin with. This text is a part of a template itself, so that it does not stand here."""
AROUND = 30
"""Characters that are shown before and after such a tag."""
GREATEST = 1.7976931348623157e308
"""What MLflow's SQL stores keep in the place of infinity."""
AGAIN = frozenset([408, 429, 500, 502, 503, 504])
PAGE, MOST_RUNS, MOST_SAID = 1000, 100_000, 20
POINTS, MOST_PAGES = 10_000, 10
MOST_IN_ORDER = 2
"""Objectives that a front can have so that its trials, in order by the first, are in order by the others, too."""


class AnswerError(SystemExit):
    """There is no answer; the message, which ends the program, says why, and what to do."""


def env(name: str, otherwise: str = "") -> str:
    """Return a variable; one that is empty is not there."""
    return os.environ.get(name) or otherwise


# MLflow's REST API.


def request(path: str, body: dict[str, Any] | None) -> urllib.request.Request:
    """Return a request with whatever MLflow's own library would log in with."""
    headers = {"Content-Type": "application/json"}
    user, token = env("MLFLOW_TRACKING_USERNAME"), env("MLFLOW_TRACKING_TOKEN")
    if user:
        both = (user + ":" + env("MLFLOW_TRACKING_PASSWORD")).encode()
        headers["Authorization"] = "Basic " + base64.b64encode(both).decode()
    elif token:
        headers["Authorization"] = "Bearer " + token
    if env("MLFLOW_WORKSPACE"):
        headers["X-MLFLOW-WORKSPACE"] = env("MLFLOW_WORKSPACE")
    data = None if body is None else json.dumps(body).encode()
    url = env("MLFLOW_TRACKING_URI").rstrip("/") + "/api/2.0/mlflow/" + path
    return urllib.request.Request(url, data, headers)  # noqa: S310 - main() let only HTTP pass


def context() -> ssl.SSLContext:
    """Return how servers are trusted, by the variables of MLflow's own library."""
    made = ssl.create_default_context(cafile=env("MLFLOW_TRACKING_SERVER_CERT_PATH") or None)
    if env("MLFLOW_TRACKING_CLIENT_CERT_PATH"):
        made.load_cert_chain(env("MLFLOW_TRACKING_CLIENT_CERT_PATH"))
    if env("MLFLOW_TRACKING_INSECURE_TLS").lower() in ("true", "1"):
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def ask(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return MLflow's answer; what it refuses has an ``error_code`` in it. An MLflow that is away is asked again."""
    give_up, pause = time.monotonic() + AWAY_S, 0.5
    while True:
        try:
            with urllib.request.urlopen(request(path, body), timeout=60, context=context()) as answer:  # noqa: S310 - see request()
                told = decoded(whole(answer, give_up))
                if isinstance(told, dict):
                    return told
                problem = "the answer is no JSON object"
        except urllib.error.HTTPError as error:
            problem = "HTTP status " + str(error.code)
            try:
                told = decoded(error.read(MOST_ERROR))
            except ValueError:
                told = None
            if isinstance(told, dict) and "error_code" in told and error.code not in AGAIN:
                return told
            if error.code not in AGAIN:
                raise AnswerError("MLflow answers " + problem + " to " + path) from None
        except (OSError, ValueError) as error:
            problem = str(error)
        if time.monotonic() > give_up:
            raise AnswerError("MLflow at " + where() + " does not answer: " + problem[:MOST_TEXT])
        time.sleep(pause)
        pause = min(2 * pause, 10.0)


def whole(answer: Any, until: float) -> bytes:  # noqa: ANN401 - a response of http.client, whatever its version says
    """Return the whole of an answer; one that is too long, or comes too slowly, is an error."""
    pieces: list[bytes] = []
    much = 0
    while True:
        piece = answer.read1(2**16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        much += len(piece)
        if much > MOST_ANSWER or time.monotonic() > until:
            problem = "the answer does not end"
            raise ValueError(problem)


def decoded(text: bytes) -> Any:  # noqa: ANN401 - whatever the JSON holds
    """Return the JSON in a text; what is nested too deeply is none, in every version of Python."""
    steps = STRING.sub(b"", text).translate(STEPS, bytes(set(range(256)) - set(b"[]{}")))
    if max(itertools.accumulate(1 if step else -1 for step in steps), default=0) > MOST_DEPTH:
        problem = "the answer is nested too deeply"
        raise ValueError(problem)
    return json.loads(text)


def where() -> str:
    """Return MLflow's address without a user's name and password."""
    parts = urllib.parse.urlsplit(env("MLFLOW_TRACKING_URI"))
    return parts.scheme + "://" + parts.netloc.rpartition("@")[2] + parts.path


def needed(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return MLflow's answer, and fail where it refuses."""
    answer = ask(path, body)
    if "error_code" in answer:
        raise AnswerError("MLflow refuses " + path.partition("?")[0] + ": " + str(answer.get("message"))[:MOST_TEXT])
    return answer


def pages(path: str, body: dict[str, Any], of: str) -> list[dict[str, Any]]:
    """Return the things of all pages of an answer."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = needed(path, dict(body, page_token=token) if token else body)
        found += answer.get(of, [])
        token = answer.get("next_page_token", "")
        if not token or len(found) >= MOST_RUNS:
            return found


# The runs of the trials.


def tags(run: dict[str, Any]) -> dict[str, str]:
    """Return the tags of a run."""
    return {tag["key"]: tag.get("value", "") for tag in run.get("data", {}).get("tags", [])}


def metrics(run: dict[str, Any]) -> dict[str, float]:
    """Return the newest value of each metric; JSON leaves zero out, and has words for what is no number."""
    found = {}
    for metric in run.get("data", {}).get("metrics", []):
        value = float(metric.get("value", 0.0))
        found[metric["key"]] = math.copysign(math.inf, value) if abs(value) >= GREATEST else value
    return found


def logged_at(run: dict[str, Any], key: str) -> int:
    """Return when the newest point of a metric of a run was logged, in milliseconds since 1970."""
    return max(int(one.get("timestamp", 0)) for one in run["data"]["metrics"] if one["key"] == key)


def find_runs(sweep: str) -> list[dict[str, Any]]:
    """Return the runs of the sweep's trials, the newest first: scripts may log to experiments of their own."""
    wanted = "tags.`specon.sweep_id` = '" + sweep + "' AND tags.`specon.trial_id` != ''"
    named = ask("experiments/get-by-name?" + urllib.parse.urlencode({"experiment_name": env("MLFLOW_EXPERIMENT_NAME")}))
    home = [named["experiment"]["experiment_id"]] if "experiment" in named else []
    body = {"filter": wanted, "max_results": PAGE}
    runs = pages("runs/search", dict(body, experiment_ids=home), "runs") if home else []
    if len(by_trial(runs, sweep)) < int(env("SPECON_TRIALS", "0")):
        everywhere = pages("experiments/search", {"max_results": PAGE}, "experiments")
        others = [one["experiment_id"] for one in everywhere if one["experiment_id"] not in home]
        for start in range(0, len(others), 100):
            runs += pages("runs/search", dict(body, experiment_ids=others[start : start + 100]), "runs")
    return sorted(runs, key=lambda run: (int(run["info"].get("start_time", 0)), run["info"]["run_id"]), reverse=True)


def by_trial(runs: list[dict[str, Any]], sweep: str) -> dict[str, list[dict[str, Any]]]:
    """Return the runs of each trial, by its number such as ``t007``."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        of, _, number = tags(run)["specon.trial_id"].rpartition(".")
        if of == sweep and re.match(r"t\d{1,9}$", number):
            found.setdefault(number, []).append(run)
    return found


def that_counts(runs: list[dict[str, Any]], objective: str) -> dict[str, Any]:
    """Return which of one trial's runs counts, given the newest first.

    Of those that hooks or a controller made, that is the oldest with data. Of those that a script made, it is one of
    the newest attempt's: the newest that has the objective, one that is nested in none of the others. One of an earlier
    attempt is as these where it got the objective since, or these have ended without.
    """
    ours = [run for run in runs if not tags(run).get("specon.attempt")]
    own = [run for run in runs if tags(run).get("specon.attempt")]
    with_data = [run for run in ours if metrics(run)]
    if with_data:
        return with_data[-1]
    if not own:
        return ours[-1]
    newest = [run for run in own if tags(run)["specon.attempt"] == tags(own[0])["specon.attempt"]]
    began = min(int(run["info"].get("start_time", 0)) for run in newest)
    through = not any(run["info"].get("status") == "RUNNING" or objective in metrics(run) for run in newest)
    earlier = [run for run in own if run not in newest and objective in metrics(run)]
    newest += [run for run in earlier if through or logged_at(run, objective) > began]
    ids = [run["info"]["run_id"] for run in newest]

    def rank(run: dict[str, Any]) -> tuple[bool, bool, bool]:
        return objective in metrics(run), tags(run).get("mlflow.parentRunId") not in ids, bool(metrics(run))

    return max(newest, key=rank)


def with_newest(runs: dict[str, dict[str, Any]]) -> None:
    """Give the runs the values that were logged last, where the steps of a metric went back, as in a second phase.

    MLflow shows those of the greatest steps. Hooks mark that they went back; else only the points tell.
    """
    give_up = time.monotonic() + POINTS_S
    names = {env("SPECON_OBJECTIVE")} | {" ".join(words[1:]) for words in wanted("SPECON_FURTHER")}
    names |= {" ".join(words[:-2]) for words in wanted("SPECON_CONSTRAINTS")}
    for number, run in runs.items():
        known = metrics(run)
        if "specon.objective_first" in known and "specon.steps_back" not in known:
            continue
        for metric in run.get("data", {}).get("metrics", []):
            if metric["key"] in names and int(metric.get("step", 0)) > 0:
                last = last_point(run["info"]["run_id"], metric["key"]) if time.monotonic() < give_up else None
                if last is None:
                    say(number + ": whether the steps of " + metric["key"] + " went back is not known")
                elif int(last.get("step", 0)) < int(metric["step"]):
                    say(number + ": the steps of " + metric["key"] + " went back: the value logged last counts")
                    metric.update(value=last.get("value", 0.0), step=last.get("step", 0))


def last_point(run_id: str, key: str) -> dict[str, Any] | None:
    """Return the point of a metric that was logged last, None where MLflow does not tell, or there are too many."""
    query, newest, token = {"run_id": run_id, "metric_key": key, "max_results": POINTS}, None, ""
    for _ in range(MOST_PAGES):
        page = dict(query, page_token=token) if token else query
        answer = ask("metrics/get-history?" + urllib.parse.urlencode(page))
        if "error_code" in answer:
            return None
        points = answer.get("metrics", []) + ([newest] if newest else [])
        newest = max(points, key=lambda one: (int(one.get("timestamp", 0)), int(one.get("step", 0))), default=None)
        token = answer.get("next_page_token", "")
        if not token:
            return newest
    return None


def ended_runs(sweep: str) -> dict[str, dict[str, Any]]:
    """Return the run of each trial, once all have ended or those that have not are not waited for any longer."""
    began = time.monotonic()
    while True:
        asked = time.monotonic()
        several = by_trial(find_runs(sweep), sweep)
        runs = {number: that_counts(of, env("SPECON_OBJECTIVE")) for number, of in several.items()}
        going_on = any(run["info"].get("status") == "RUNNING" for run in runs.values())
        lacking = len(runs) < int(env("SPECON_TRIALS", "0"))
        wait_s = UNENDED_S if going_on else UNSEEN_S if lacking else 0.0
        if time.monotonic() >= began + wait_s:
            return dict(sorted(runs.items()))
        time.sleep(max(2.0, time.monotonic() - asked))


# What became of the trials.


def points() -> dict[str, dict[str, Any]]:
    """Return the hyperparameters of each trial as the sweep's author chose them; none where a search did."""
    names, rows = json.loads(env("SPECON_NAMES")), json.loads(env("SPECON_POINTS", "[]"))
    return {row[0]: dict(zip(names, row[1:])) for row in rows}  # noqa: B905 - later than Python 3.8


def parsed(text: str) -> str | float | bool:
    """Return a value that MLflow keeps as text, as hooks and MLflow's own library write it."""
    if text in ("True", "False"):
        return text == "True"
    try:
        value = decoded(text.encode("utf-8", "replace"))
    except ValueError:
        return text
    return value if isinstance(value, (int, float)) and math.isfinite(value) else text


def logged_params(run: dict[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters that a run was given or logged."""
    try:
        known = decoded(tags(run).get("specon.params", "{}").encode("utf-8", "replace"))
    except ValueError:
        known = {}
    written = {pair["key"]: parsed(pair.get("value", "")) for pair in run.get("data", {}).get("params", [])}
    both = dict(written, **known) if isinstance(known, dict) else written
    return {name: both[name] for name in json.loads(env("SPECON_NAMES")) if name in both}


def changed_params(run: dict[str, Any], began_with: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers that a trial of a population has now, where it began with others."""
    logged = {name: metrics(run).get("specon.param." + name) for name in began_with}
    changed = {name: value for name, value in logged.items() if value is not None and math.isfinite(value)}
    whole = {name: isinstance(began_with[name], int) and value == int(value) for name, value in changed.items()}
    return {name: int(value) if whole[name] else value for name, value in changed.items()}


def checkpoints(number: str, run_id: str) -> str:
    """Return where the checkpoints of a trial are."""
    trial, store = env("SPECON_SWEEP_ID") + "." + number, env("SPECON_STATE_STORE")
    if not store or Path(env("SPECON_STATE_ROOT"), trial).is_dir():
        return env("SPECON_STATE_ROOT") + "/" + trial + "/checkpoints"
    return "runs:/" + run_id + "/specon-state/" + trial if store == "mlflow" else store.rstrip("/") + "/" + trial


def outcome(run: dict[str, Any], value: float | None) -> str:
    """Return how a trial ended. Where its sweep goes on without those that failed, Argo does not tell which did."""
    status, succeeded = run["info"].get("status"), env("SPECON_ALL_SUCCEEDED") == "true"
    stopped = tags(run).get("specon.outcome") == "stopped"
    if not stopped and status != "FINISHED" and not (succeeded and status == "RUNNING"):
        return "failed"
    if value is not None and math.isfinite(value) and not keeps_constraints(run):
        return "breaks a constraint"
    if stopped:
        return "stopped"
    if value is None:
        return "no value"
    return "succeeded" if math.isfinite(value) else "diverged"


def wanted(name: str) -> list[list[str]]:
    """Return the words of each objective beside the first, or of each constraint; a metric may have blanks."""
    return [part.split(" ") for part in env(name).split(", ") if part]


def keeps_constraints(run: dict[str, Any]) -> bool:
    """Return whether the newest values of a run keep each constraint; one that is not known is broken."""
    for words in wanted("SPECON_CONSTRAINTS"):
        value, bound = metrics(run).get(" ".join(words[:-2]), math.nan), float(words[-1])
        if not (math.isfinite(value) and (value <= bound if words[-2] == "<=" else value >= bound)):
            return False
    return True


def values_of(run: dict[str, Any], value: float | None) -> dict[str, float | None]:
    """Return the value of each objective, None where it is no number."""
    known = {env("SPECON_OBJECTIVE"): value}
    known.update({name: metrics(run).get(name) for name in (" ".join(words[1:]) for words in wanted("SPECON_FURTHER"))})
    return {name: one if one is not None and math.isfinite(one) else None for name, one in known.items()}


def trials_of(runs: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is told of each trial: those with a value first, the best of them first."""
    known, objective = points(), env("SPECON_OBJECTIVE")
    told: list[dict[str, Any]] = []
    for number, run in runs.items():
        run_id, value = run["info"]["run_id"], metrics(run).get(objective)
        params = known.get(number) or logged_params(run)
        told.append(
            {
                "trial": number,
                "outcome": outcome(run, value),
                "value": value if value is not None and math.isfinite(value) else None,
                "run_id": run_id,
                "params": dict(params, **changed_params(run, params)),
                "checkpoint": checkpoints(number, run_id),
            }
        )
        if env("SPECON_FURTHER"):
            told[-1]["values"] = values_of(run, value)
    told.sort(key=lambda trial: (not has_model(trial), loss(trial)))
    return told


def has_model(trial: dict[str, Any]) -> bool:
    """Return whether a trial may be the best."""
    return trial["value"] is not None and trial["outcome"] in ("succeeded", "stopped")


def loss(trial: dict[str, Any]) -> float:
    """Return how bad a trial is, so that smaller is better."""
    if not has_model(trial):
        return 0.0
    value = float(trial["value"])
    return -value if env("SPECON_DIRECTION") == "maximize" else value


def front_of(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the trials that no other beats, as good by all and better by one, in order by the first objective."""
    ways = [env("SPECON_DIRECTION") == "maximize"]
    ways += [words[0] == "maximize" for words in wanted("SPECON_FURTHER")]
    known = []
    for place, trial in enumerate(trials):
        values = list(trial["values"].values())
        if has_model(trial) and None not in values:
            known.append((tuple(-one if up else one for one, up in zip(values, ways)), place))  # noqa: B905 - see points()
    front: list[tuple[float, ...]] = []
    found = []
    # In this order, whatever beats one comes before it. Of two objectives the last on the front is the best by the
    # second.
    for losses, place in sorted(known):
        beside = front if len(ways) > MOST_IN_ORDER else front[-1:]
        if not any(other != losses and all(a <= b for a, b in zip(other, losses)) for other in beside):  # noqa: B905 - as above
            front.append(losses)
            found.append(trials[place])
    return found


def why_none(trials: list[dict[str, Any]], runs: dict[str, dict[str, Any]]) -> str:
    """Say why no trial has a value of the objective."""
    objective, told = env("SPECON_OBJECTIVE"), [trial["outcome"] for trial in trials]
    counts = ", ".join(str(told.count(one)) + " " + one for one in sorted(set(told))) or "MLflow has no run of any"
    logged = sorted({name for run in runs.values() for name in metrics(run) if not name.startswith("specon.")})
    also = " They logged " + ", ".join(logged[:MOST_SAID]) + "." if logged and objective not in logged else ""
    return "no trial of sweep " + env("SPECON_SWEEP_ID") + " has a value of " + objective + ": " + counts + "." + also


# Outputs.


def text_of(name: str, value: object) -> str:
    """Return a hyperparameter's value as it stands on a command line; it becomes a part of later steps."""
    text = value if isinstance(value, str) else json.dumps(value)
    if len(text) > MOST_TEXT or not text.isprintable() or TAG in text:
        raise AnswerError("MLflow has a value of " + name + " that none can have: " + repr(text[:MOST_SAID]))
    return text


def for_template(name: str, text: str) -> str:
    """Return the text of an output, which becomes a part of the templates of later steps.

    All that this pod hands on passes here, be it the word of a run, a server or a registry.
    """
    at = text.find(TAG)
    if at >= 0:
        shown = text[max(0, at - AROUND) : at + AROUND]
        raise AnswerError("output " + name + " holds what Argo would replace: " + repr(shown))
    if not text.isprintable():
        raise AnswerError("output " + name + " holds characters that none may have: " + repr(text[:MOST_SAID]))
    return text


def checked_params(trial: dict[str, Any]) -> dict[str, Any]:
    """Return all hyperparameters of a trial."""
    params, names = trial["params"], json.loads(env("SPECON_NAMES"))
    lacking = [name for name in names if name not in params]
    if lacking:
        message = "run " + trial["run_id"] + " of the best trial, " + trial["trial"] + ", has no parameter "
        raise AnswerError(message + ", ".join(lacking) + ": log it, as mlflow.log_params() or the hooks do")
    return {name: params[name] for name in names if text_of(name, params[name]) is not None}


def input_name(name: str) -> str:
    """Return the name of a hyperparameter where Argo allows no dots."""
    return name.replace(".", "_").replace("-", "_")


def within_bounds(rows: list[dict[str, Any]]) -> str:
    """Return the rows as JSON, as many of the first ones as may go into a workflow."""
    kept: list[dict[str, Any]] = []
    size = 2
    for row in rows:
        size += len(json.dumps(row).encode()) + 2
        if size > MOST_BYTES:
            say("the table holds the first " + str(len(kept)) + " of " + str(len(rows)) + " trials: MLflow has all")
            break
        kept.append(row)
    return json.dumps(kept)


def item_of(trial: dict[str, Any]) -> dict[str, Any]:
    """Return one of the best as an item to fan out over: ``item.param-lr`` is a hyperparameter alone."""
    params = checked_params(trial)
    item = {name: trial[name] for name in ("trial", "run_id", "checkpoint")}
    item.update(value=json.dumps(trial["value"]), params=params)
    item.update({"param-" + input_name(name): text_of(name, value) for name, value in params.items()})
    return item


def outputs_of(trials: list[dict[str, Any]]) -> dict[str, str]:
    """Return the text of each output by its name."""
    ranked = [trial for trial in trials if has_model(trial)]
    best = ranked[0]
    params = checked_params(best)
    found = {
        "value": json.dumps(best["value"]),
        "trial": best["trial"],
        "run-id": best["run_id"],
        "checkpoint": best["checkpoint"],
        "params": json.dumps(params),
        "trials": within_bounds(trials),
    }
    found.update({"param-" + input_name(name): text_of(name, value) for name, value in params.items()})
    if env("SPECON_FURTHER"):
        front = [dict(item_of(trial), values=trial["values"]) for trial in front_of(trials)]
        found["front"] = within_bounds(front)
    for count in env("SPECON_TOP").split():
        found["top-" + count] = json.dumps([item_of(trial) for trial in ranked[: int(count)]])
    return found


# The model registry.


def model_of(trial: dict[str, Any]) -> dict[str, Any]:
    """Return where the model of a trial is, as MLflow's registry takes it.

    It is the newest model that its run logged; without one, its newest checkpoint, if that is an artifact of the run.
    """
    run_id = trial["run_id"]
    run = needed("runs/get?" + urllib.parse.urlencode({"run_id": run_id}))["run"]
    models = run.get("outputs", {}).get("model_outputs", [])
    if models:
        model_id = max(models, key=lambda model: int(model.get("step", 0)))["model_id"]
        return {"source": "models:/" + model_id, "model_id": model_id, "run_id": run_id}
    root = run["info"]["artifact_uri"].rstrip("/")
    logged = decoded(tags(run).get("mlflow.log-model.history", "[]").encode("utf-8", "replace"))
    if logged:
        return {"source": root + "/" + logged[-1]["artifact_path"], "run_id": run_id}
    folder = "specon-state/" + env("SPECON_SWEEP_ID") + "." + trial["trial"]
    listed = ask("artifacts/list?" + urllib.parse.urlencode({"run_id": run_id, "path": folder})).get("files", [])
    steps = [file["path"] for file in listed if re.search(r"/step-\d+$", file["path"])]
    if steps:
        return {"source": root + "/" + max(steps, key=lambda path: int(path.rpartition("-")[2])), "run_id": run_id}
    message = (
        "run " + run_id + " of the best trial, " + trial["trial"] + ", has no model to register: log one, such as "
    )
    raise AnswerError(
        message + 'by mlflow.pytorch.log_model(model, name="model"), or keep checkpoints by state="mlflow"'
    )


def register(wanted: str, trial: dict[str, Any]) -> dict[str, str]:
    """Make the best model a version in MLflow's registry, with an alias; once, however often this runs."""
    name, _, alias = wanted.partition("@")
    model, sweep = model_of(trial), env("SPECON_SWEEP_ID")
    made = ask("registered-models/create", {"name": name})
    if made.get("error_code", "RESOURCE_ALREADY_EXISTS") != "RESOURCE_ALREADY_EXISTS":
        raise AnswerError("MLflow makes no model " + name + ": " + str(made.get("message"))[:MOST_TEXT])
    wanted_versions = "name='" + name + "' and run_id='" + trial["run_id"] + "'"
    query = urllib.parse.urlencode({"filter": wanted_versions, "max_results": 200})
    known = needed("model-versions/search?" + query).get("model_versions", [])
    version = next((one["version"] for one in known if one.get("source") == model["source"]), None)
    if version is None:
        told = {
            "specon.sweep_id": sweep,
            "specon.trial_id": sweep + "." + trial["trial"],
            env("SPECON_OBJECTIVE"): json.dumps(trial["value"]),
        }
        told.update({"param." + key: text_of(key, value) for key, value in trial["params"].items()})
        pairs = [{"key": key, "value": value} for key, value in told.items()]
        created = needed("model-versions/create", dict(model, name=name, tags=pairs))
        version = created["model_version"]["version"]
    needed("registered-models/alias", {"name": name, "alias": alias, "version": str(version)})
    say("model " + name + " has version " + str(version) + ", " + alias)
    return {"model-version": str(version), "model-uri": "models:/" + name + "/" + str(version)}


def say(text: str) -> None:
    """Write a line into the log."""
    sys.stdout.write(text + "\n")


def main() -> None:
    """Write the outputs, or say why there are none."""
    if not env("MLFLOW_TRACKING_URI").startswith(("http://", "https://")):
        raise AnswerError("a sweep's outputs are read over HTTP; MLFLOW_TRACKING_URI names no server: " + where())
    if not re.match(r"[\w.-]+$", env("SPECON_SWEEP_ID")):
        raise AnswerError("a sweep has no such id: " + repr(env("SPECON_SWEEP_ID")[:MOST_TEXT]))
    runs = ended_runs(env("SPECON_SWEEP_ID"))
    with_newest(runs)
    trials = trials_of(runs)
    if not any(has_model(trial) for trial in trials):
        raise AnswerError(why_none(trials, runs))
    outputs = outputs_of(trials)
    if env("SPECON_REGISTER"):
        outputs.update(register(env("SPECON_REGISTER"), trials[0]))
    checked = {name: for_template(name, text) for name, text in outputs.items()}
    folder = Path(env("SPECON_OUTPUTS"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in checked.items():
        (folder / name).write_text(text, encoding="utf-8")
    say("the best is " + trials[0]["trial"] + ": " + env("SPECON_OBJECTIVE") + " " + outputs["value"])


if __name__ == "__main__":
    main()
