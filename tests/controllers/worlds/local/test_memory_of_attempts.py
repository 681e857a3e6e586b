"""How many more attempts the memory holds, by what those before them came to."""

from controllers.worlds.local.gauge import MemoryThere
from controllers.worlds.local.memory import UNTOLD, Holding, MemoryUse

GB = 2.0**30
KIND = "train"


def there(available: float, total: float = 100 * GB) -> MemoryThere:
    return MemoryThere(total, available + 0.05 * total)


def ran(use: MemoryUse, peak: float, name: str = "t") -> None:
    use.read(name, Holding(KIND, 0.0, 0.0), 1.0, peak)
    use.end(name, well=True)


def more(use: MemoryUse, free: MemoryThere, *running: str, asked: float = 0.0) -> int:
    return use.more(free, {KIND: asked}, dict.fromkeys(running, (KIND, asked)))


def test_before_any_has_told_each_counts_as_much_as_most_trainings_need() -> None:
    assert more(MemoryUse(), there(3.5 * UNTOLD)) == 3
    assert more(MemoryUse(), there(0.5 * UNTOLD)) == 0
    assert more(MemoryUse(), there(3.5 * UNTOLD), "a", "b") == 1


def test_what_the_author_asked_for_counts_until_more_is_seen() -> None:
    use = MemoryUse()
    assert more(use, there(1.05 * GB), asked=0.1 * GB) == 10
    ran(use, GB)
    assert more(use, there(2.3 * GB), asked=0.1 * GB) == 2


def test_the_largest_that_ended_tells_what_the_others_need() -> None:
    use = MemoryUse()
    ran(use, 0.2 * GB)
    ran(use, 0.5 * GB, "u")
    ran(use, 0.1 * GB, "v")
    assert more(use, there(1.2 * GB)) == 2


def test_what_running_attempts_will_grow_by_is_kept_for_them() -> None:
    use = MemoryUse()
    ran(use, 1.0 * GB)
    use.read("a", Holding(KIND, 0.0, 0.0), 0.0, 0.3 * GB)
    assert more(use, there(1.5 * GB)) == 1
    assert more(use, there(1.5 * GB), "a") == 0
    use.read("a", Holding(KIND, 0.0, 0.0), 1.0, 1.1 * GB)
    assert more(use, there(1.5 * GB), "a") == 1


def test_an_attempt_tells_while_it_runs_once_it_grows_no_more() -> None:
    use = MemoryUse()
    for at in range(10):
        use.read("a", Holding(KIND, 0.0, 0.0), float(at), 0.1 * GB)
    assert more(use, there(0.9 * GB), "a") == 0
    use.read("a", Holding(KIND, 0.0, 0.0), 10.0, 0.1 * GB)
    assert more(use, there(0.9 * GB), "a") > 5


def test_an_attempt_that_grows_on_counts_with_its_growth() -> None:
    use = MemoryUse()
    for at in range(30):
        use.read("a", Holding(KIND, 0.0, 0.0), float(at), 0.2 * GB * at)
    assert more(use, there(12 * GB), "a") == 1


def test_a_trial_that_failed_at_once_tells_nothing() -> None:
    use = MemoryUse()
    use.read("a", Holding(KIND, 0.0, 0.0), 1.0, 0.01 * GB)
    assert use.end("a", well=False) == 0.01 * GB
    assert more(use, there(3.5 * UNTOLD)) == 3


def test_what_one_held_when_it_was_killed_counts_for_the_others() -> None:
    use = MemoryUse()
    ran(use, 0.1 * GB)
    use.tell(KIND, 2 * GB)
    assert more(use, there(4.5 * GB)) == 2
