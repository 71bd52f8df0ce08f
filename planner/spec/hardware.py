"""What a hardware card says: an accelerator, its links and its node. Data-sheet peaks only, never efficiencies."""

from typing import Literal

from pydantic import Field, PositiveInt

from planner.spec.card import ASSUMED, Card, Name, Sourced, SourceKey
from planner.units import Bandwidth, Bytes, FlopRate, Money, Power, Seconds

ComputeFormat = Literal["bf16", "fp8", "fp4", "int8"]
"""A number format of the matrix units."""


class Memory(Sourced):
    """On-package memory of one accelerator."""

    capacity: Bytes = Field(gt=0)
    """Capacity as built [B]: stacks that are sold as 80 GB hold 80 GiB."""
    usable: Bytes = Field(gt=0)
    """Capacity that the driver reports as total [B]."""
    bandwidth: Bandwidth = Field(gt=0)
    """Peak read bandwidth [B/s]."""
    usable_source: SourceKey = ASSUMED
    """Key into ``sources`` for ``usable``, or ``assumed``: sheets do not give it, logs do."""


class Peak(Sourced):
    """Dense peaks of the matrix units, per number format. A format without its own units is absent."""

    rates: dict[ComputeFormat, FlopRate] = Field(min_length=1)
    """Dense peak [FLOP/s]; never the sparse figure."""


class Link(Sourced):
    """A link out of one accelerator, in one direction."""

    technology: str
    """For example ``NVLink 4`` or ``InfiniBand NDR``."""
    bandwidth: Bandwidth = Field(gt=0)
    """Peak bandwidth of one accelerator, one direction [B/s]."""
    latency: Seconds = Field(gt=0)
    """One-way latency of a small message [s]."""
    latency_source: SourceKey = ASSUMED
    """Key into ``sources`` for ``latency``, or ``assumed``; data sheets seldom give it."""
    domain: PositiveInt
    """Accelerators that this link joins."""
    pair_bandwidth: Bandwidth | None = Field(default=None, gt=0)
    """Bandwidth between two accelerators alone, where a mesh or torus gives less than ``bandwidth`` [B/s]."""


class Host(Sourced):
    """The path between one accelerator and its host's memory."""

    bandwidth: Bandwidth = Field(gt=0)
    """Peak bandwidth, one direction [B/s]."""


class Storage(Sourced):
    """Local storage of one node."""

    capacity: Bytes = Field(gt=0)
    """Capacity of one node [B]."""
    bandwidth: Bandwidth = Field(gt=0)
    """Sequential read bandwidth of one node [B/s]."""


class Node(Sourced):
    """The server that holds the accelerators."""

    accelerators: PositiveInt
    """Accelerators of one node."""
    power: Power | None = Field(default=None, gt=0)
    """Largest power of a whole node [W]; where absent, accelerators' TDP times 1.5 is assumed."""
    dram: Bytes = Field(gt=0)
    """Host memory of one node [B]."""


class Price(Sourced):
    """A dated price."""

    per_hour: Money = Field(gt=0)
    """Price of one accelerator for an hour [USD/h]."""
    date: str = Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$", examples=["2025-06"])
    """When the price was read: year, month or day."""


class HardwareCard(Card):
    """An accelerator and the network around it."""

    name: Name
    """Equals the file's stem."""
    title: str
    """Name for people."""
    vendor: str
    family: str
    """Architecture, for example ``hopper``: accelerators that run the same kernels."""
    sources: dict[str, str] = Field(min_length=1)
    memory: Memory
    peak: Peak
    tdp: Power = Field(gt=0)
    """Thermal design power of one accelerator [W]."""
    tdp_source: SourceKey
    """Key into ``sources``, or ``assumed``."""
    scale_up: Link
    """Links inside a node or rack (NVLink, Infinity Fabric, ICI, or PCIe where there is nothing better)."""
    scale_out: Link
    """Links between nodes."""
    host: Host
    node: Node
    storage: Storage
    price: Price
