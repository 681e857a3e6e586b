from hera_specon.doctor.checks.volumes import check_volumes
from hera_specon.doctor.facts import VolumeFacts


def test_a_claim_is_missing_or_shared_or_not() -> None:
    claims = {"gone": ("there is none", ()), "once": ("", ("one node at a time",)), "fine": ("", ())}
    found = {
        one.subject: one
        for one in check_volumes(VolumeFacts(name="lab", claims=claims, too_large=["no node has 9 GPUs"]))
    }
    assert [found[f"claim {name}"].verdict for name in claims] == ["fault", "warning", "ok"]
    assert found["nodes"].verdict == "warning"
    assert all(one.advice for one in found.values() if one.verdict != "ok")


def test_what_stands_against_claimed_devices_is_told_with_where_to_look() -> None:
    (found,) = check_volumes(VolumeFacts(name="lab", claimed=["there is no ResourceClaimTemplate 'one-gpu'"]))
    assert (found.subject, found.verdict) == ("resource claims", "warning")
    assert "resourceclaimtemplates -n lab" in found.command
