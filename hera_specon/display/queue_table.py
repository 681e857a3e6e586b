"""The table of ``specon queue``, drawn with rich."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from controllers.core.queue_places import QueuePlace
from hera_specon import formatting
from hera_specon.cluster.sweep_queue import UNTOLD, QueueRow

_NONE = "No sweep runs or waits here."


def queue_table(rows: Sequence[QueueRow], now_epoch_s: float) -> RenderableType:
    """Return a row for each sweep: what it counts, what it has, and why; ``now_epoch_s`` is in Unix seconds."""
    if not rows:
        return Text(_NONE)
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("namespace", "sweep", "workflow"):
        table.add_column(title, overflow="fold")
    for title in ("weight", "priority", "running", "waiting", "cores", "devices", "nothing for"):
        table.add_column(title, justify="right")
    table.add_column("why", overflow="fold")
    for row in rows:
        names = (row.namespace, ", ".join(row.sweeps), row.workflow)
        figures = ("",) * 7 if row.place is None else _figures(row.place, now_epoch_s)
        told = (*names, *figures, UNTOLD if row.place is None else row.place.reason)
        table.add_row(*(Text(formatting.printable(cell)) for cell in told))
    return Group(table, Text("cores and devices: had / may be had"))


def _figures(place: QueuePlace, now_epoch_s: float) -> tuple[str, ...]:
    devices = f"{place.has_devices or 'none'} / {place.entitled_devices or 'none'}"
    return (
        f"{place.weight:g}",
        str(place.priority),
        str(place.running),
        str(place.waiting),
        f"{place.has_cpu:.3g} / {place.entitled_cpu:.3g}",
        devices if place.has_devices or place.entitled_devices else "",
        formatting.seconds(max(0.0, now_epoch_s - place.waits_since)) if place.waits_since else "",
    )
