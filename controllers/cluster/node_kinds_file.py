"""The file in which an owner says what kinds of nodes can come, and what nodes cost."""

from pathlib import Path
from typing import Annotated, Final

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from controllers.core import foreign_yaml
from controllers.core.devices import Devices, is_device
from controllers.core.errors import SpeconError
from controllers.core.node_kinds import MOST_KINDS
from controllers.worlds.argo.calls.untrusted import quantity
from controllers.worlds.argo.reading.demands import Taint
from controllers.worlds.argo.reading.node_kinds import NOTHING_GIVEN, GivenKind, GivenKinds, GivenPrice

MOST_BYTES: Final = 2**20
_NO_SCHEDULE: Final = "NoSchedule"


class NodeKindsError(SpeconError):
    """The file is not there, or says something that makes no sense."""


def _amount(written: object) -> float:
    amount = quantity(written)
    if amount <= 0:
        message = f"{written!r} is no quantity above 0, such as 4, 500m or 16Gi"
        raise ValueError(message)
    return amount


def _device(written: str) -> str:
    if not is_device(written):
        message = f"{written!r} is no device, such as nvidia.com/gpu"
        raise ValueError(message)
    return written


_Quantity = Annotated[float, BeforeValidator(_amount)]
_Device = Annotated[str, BeforeValidator(_device)]
_Labels = Annotated[dict[str, str], Field(min_length=1)]
_Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Kind(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=253)]
    labels: _Labels
    cpu: _Quantity
    memory: _Quantity
    devices: dict[_Device, Annotated[int, Field(gt=0)]] = {}
    taints: list[str] = []
    most: Annotated[int, Field(ge=0)]
    boots: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0
    price: _Price | None = None
    spot: bool = False

    def given(self) -> GivenKind:
        return GivenKind(
            name=self.name,
            labels=self.labels,
            cpu=self.cpu,
            memory=self.memory,
            devices=Devices.of(self.devices),
            taints=tuple(Taint(*_key_and_value(taint), _NO_SCHEDULE) for taint in self.taints),
            most=self.most,
            boots_s=self.boots,
            price=self.price,
            spot=self.spot,
        )


class _PriceOf(BaseModel):
    model_config = ConfigDict(extra="forbid")

    labels: _Labels
    price: _Price


class _NodeKindsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kinds: Annotated[list[_Kind], Field(max_length=MOST_KINDS)] = []
    prices: Annotated[list[_PriceOf], Field(max_length=1000)] = []


def read_node_kinds(file: str) -> GivenKinds:
    """Return what ``file`` says; nothing where its name is empty.

    Raises:
        NodeKindsError: it cannot be read, or an entry of it makes no sense; all such entries are named.
    """
    if not file:
        return NOTHING_GIVEN
    try:
        path = Path(file)
        if path.stat().st_size > MOST_BYTES:
            message = f"{file} has more than {MOST_BYTES} bytes"
            raise NodeKindsError(message)
        found = _NodeKindsFile.model_validate(foreign_yaml.parsed(path.read_text(encoding="utf-8")) or {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        message = f"{file} cannot be read: {error}"
        raise NodeKindsError(message) from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        message = f"{file} makes no sense: {problems}"
        raise NodeKindsError(message) from error
    names = [kind.name for kind in found.kinds]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        message = f"{file} has several kinds named {', '.join(repeated)}: give each a name of its own"
        raise NodeKindsError(message)
    prices = tuple(GivenPrice(one.labels, one.price) for one in found.prices)
    return GivenKinds(tuple(kind.given() for kind in found.kinds), prices)


def _key_and_value(taint: str) -> tuple[str, str]:
    key, _, value = taint.partition("=")
    return key, value
