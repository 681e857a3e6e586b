"""The lease as an object: what the API server gets to see, and how its answers are read."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from controllers.cluster.election import Create, Lease, LeaseUnavailableError, Read, Replace
from controllers.cluster.leadership import KubernetesLease
from controllers.worlds.argo.calls.errors import ConflictError, ForbiddenError, NotFoundError

Json = dict[str, Any]
PATH = "/apis/coordination.k8s.io/v1/namespaces/team/leases"


@dataclass
class Api:
    """An API server with room for one lease."""

    kept: Json | None = None
    refusal: Exception | None = None
    versions: list[str] = field(default_factory=lambda: [str(number) for number in range(9, 0, -1)])

    def get(self, path: str) -> Json:
        assert path == f"{PATH}/specon-controller"
        if self.refusal:
            raise self.refusal
        if self.kept is None:
            raise NotFoundError
        return self.kept

    def create(self, path: str, body: Json) -> Json:
        assert path == PATH
        if self.kept is not None:
            raise ConflictError
        return self._keep(body)

    def replace(self, path: str, body: Json) -> Json:
        assert path == f"{PATH}/specon-controller"
        if self.kept is None or body["metadata"]["resourceVersion"] != self.kept["metadata"]["resourceVersion"]:
            raise ConflictError
        return self._keep(body)

    def _keep(self, body: Json) -> Json:
        self.kept = {**body, "metadata": {**body["metadata"], "resourceVersion": self.versions.pop()}}
        return self.kept


def store(api: Api) -> KubernetesLease:
    return KubernetesLease(api, "team", "specon-controller")


def test_a_lease_is_made_renewed_and_read_back() -> None:
    api = Api()
    lease = store(api)
    assert lease.carry_out(Read()) is None
    made = lease.carry_out(Create(Lease("me", 15.0)))
    assert made == Lease("me", 15, 0, "1")
    assert lease.carry_out(Replace(made)) == Lease("me", 15, 0, "2")
    assert lease.carry_out(Read()) == Lease("me", 15, 0, "2")


def test_the_object_is_what_kubectl_and_others_expect() -> None:
    api = Api()
    store(api).carry_out(Create(Lease("me", 15.0)))
    assert api.kept is not None
    spec = api.kept["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("me", 15, 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec["renewTime"])


def test_the_time_since_which_it_is_held_stays_until_it_changes_hands() -> None:
    api = Api()
    lease = store(api)
    made = lease.carry_out(Create(Lease("me", 15.0)))
    assert made is not None
    assert api.kept is not None
    api.kept["spec"]["acquireTime"] = "2020-01-01T00:00:00.000000Z"
    found = lease.carry_out(Read())
    assert found is not None
    lease.carry_out(Replace(found))
    assert api.kept["spec"]["acquireTime"].startswith("2020")
    other = store(api)
    found = other.carry_out(Read())
    assert found is not None
    other.carry_out(Replace(Lease("other", 15.0, 1, found.version)))
    assert not api.kept["spec"]["acquireTime"].startswith("2020")


def test_a_write_on_an_old_version_changes_nothing() -> None:
    api = Api()
    lease = store(api)
    lease.carry_out(Create(Lease("me", 15.0)))
    assert lease.carry_out(Replace(Lease("other", 15.0, 1, "0"))) is None
    assert lease.carry_out(Create(Lease("other", 15.0))) is None
    assert lease.carry_out(Read()) == Lease("me", 15, 0, "1")


def test_a_refusal_is_no_answer() -> None:
    with pytest.raises(LeaseUnavailableError, match="not you"):
        store(Api(refusal=ForbiddenError("not you"))).carry_out(Read())


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": 7, "leaseDurationSeconds": -3, "leaseTransitions": "x"}])
def test_an_object_that_makes_no_sense_is_a_free_lease(spec: Json) -> None:
    api = Api({"metadata": {"resourceVersion": "5"}, "spec": spec})
    assert store(api).carry_out(Read()) == Lease("", 1, 0, "5")
