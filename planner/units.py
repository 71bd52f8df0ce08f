"""Quantities at the door: text with a unit in a document, an SI float behind it.

QuantiPhy reads number and prefix; a table for each dimension says which units are meant. Decimal prefixes are powers of
1000 and binary prefixes powers of 1024, so ``80 GB`` is 8e10 B and ``80 GiB`` is 85,899,345,920 B.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema
from quantiphy import Quantity

DIGITS = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
QUANTITY = re.compile(rf"(?P<number>{DIGITS}) ?(?P<unit>[A-Za-zµμ][A-Za-zµμ/]*)", re.ASCII)
NUMBER = re.compile(rf"{DIGITS}|[-+]?\.?(?:inf|nan)", re.ASCII | re.IGNORECASE)
CLOCK = re.compile(r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?", re.ASCII)
LONGEST = 40
"""Characters of a quantity that are read at all."""


class _Reader(Quantity):
    """Keeps our preferences apart from those of other users of QuantiPhy in the same process."""


# Without this QuantiPhy reads "5 min" as 5 milli-inch.
_Reader.set_prefs(known_units="min", ignore_sf=False)


@dataclass(frozen=True, slots=True)
class Dimension:
    """Units in which one dimension may be written."""

    symbol: str
    """SI unit behind the door."""
    bases: dict[str, tuple[float, float]]
    """Factor and divisor to the SI unit, by unit; two numbers, so that both ``Gb/s`` and ``req/min`` round once."""
    prefixes: tuple[str, ...]
    """Prefixes that the first unit may have, smallest first."""
    example: str
    """A quantity of usual size."""
    usual: str
    """Unit that is offered for a bare number."""

    def spellings(self) -> dict[str, str]:
        """Return the unit without its prefix, by unit as written."""
        prefixed = {base: base for base in self.bases}
        scaled = [base for base in self.bases if base not in _UNSCALED]
        return prefixed | {prefix + base: base for base in scaled for prefix in self.prefixes}


_UNSCALED = frozenset({"min", "h", "d", "req/min", "req/h"})
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi")
_LARGE = ("k", "M", "G", "T", "P", "E")

DIMENSIONS: dict[str, Dimension] = {
    dimension.symbol: dimension
    for dimension in (
        Dimension("B", {"B": (1, 1)}, (*_LARGE, *_BINARY), "80 GiB", "GiB"),
        Dimension("B/s", {"B/s": (1, 1), "b/s": (1, 8), "bit/s": (1, 8)}, (*_LARGE, *_BINARY), "3.35 TB/s", "GB/s"),
        Dimension("FLOP/s", {"FLOP/s": (1, 1)}, _LARGE, "989 TFLOP/s", "TFLOP/s"),
        Dimension("s", {"s": (1, 1), "min": (60, 1), "h": (3600, 1), "d": (86400, 1)}, ("n", "u", "m"), "200 ms", "ms"),
        Dimension("req/s", {"req/s": (1, 1), "req/min": (1, 60), "req/h": (1, 3600)}, (), "12 req/s", "req/s"),
        Dimension("tok/s", {"tok/s": (1, 1)}, ("k", "M"), "5000 tok/s", "tok/s"),
        Dimension("W", {"W": (1, 1)}, ("m", "k", "M"), "700 W", "W"),
        Dimension("USD/h", {"USD/h": (1, 1)}, (), "2.5 USD/h", "USD/h"),
        Dimension("USD", {"USD": (1, 1)}, (), "0.4 USD", "USD"),
        Dimension("USD/kWh", {"USD/kWh": (1, 1)}, (), "0.12 USD/kWh", "USD/kWh"),
    )
}
"""Dimensions by the SI unit that values have behind the door."""
_SPELLINGS = {symbol: dimension.spellings() for symbol, dimension in DIMENSIONS.items()}


def read_quantity(text: object, unit: str, usual: str = "") -> float:
    """Return the value of ``text`` in the SI unit ``unit``, a key of :data:`DIMENSIONS`.

    Raises :class:`ValueError` with the value and a right example where the text has no unit, has the unit of another
    dimension, or is not finite. The sign is not judged here: bounds of the field do that. ``usual`` is the unit that is
    offered for a bare number, where it is another one than the dimension's own.

    >>> read_quantity("80 GB", "B"), read_quantity("80 GiB", "B"), read_quantity("400 Gb/s", "B/s")
    (80000000000.0, 85899345920.0, 50000000000.0)
    >>> read_quantity("5 min", "s"), read_quantity("1.2e3 GB/s", "B/s")
    (300.0, 1200000000000.0)
    >>> read_quantity(500, "s")
    Traceback (most recent call last):
    ...
    ValueError: 500 has no unit; write it as text, for example '500 ms'
    """
    dimension = DIMENSIONS[unit]
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        msg = f"{_shown(text)} is not a quantity in {unit}; write it as text, for example {dimension.example!r}"
        raise ValueError(msg)  # noqa: TRY004 - pydantic turns a ValueError into a fault, and nothing else
    if not isinstance(text, str) or NUMBER.fullmatch(text.strip()):
        raise ValueError(_bare(text, dimension, usual or dimension.usual))
    return _parse(text.strip(), unit)


def _shown(value: object) -> str:
    text = str(value) if isinstance(value, int | float) else repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _bare(number: object, dimension: Dimension, usual: str) -> str:
    """Explain that a number has no unit."""
    shown = _shown(number).strip("'")
    finite = re.fullmatch(r"\d+(\.\d+)?", shown)
    example = f"{shown} {usual}" if finite else dimension.example
    return f"{shown} has no unit; write it as text, for example {example!r}"


def _plain(number: str) -> str:
    """Write a number without an exponent, behind which QuantiPhy sees no prefix."""
    return f"{Decimal(number):f}"


@lru_cache(maxsize=4096)
def _parse(text: str, unit: str) -> float:
    """Read a quantity that is text."""
    dimension = DIMENSIONS[unit]
    match = QUANTITY.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        msg = f"{_shown(text)} is not a quantity in {unit}, for example {dimension.example!r}"
        raise ValueError(msg)
    written = match["unit"].replace("µ", "u").replace("μ", "u")
    base = _SPELLINGS[unit].get(written)
    if base is None:
        msg = f"{text!r} is not in {unit}: {_hint(match['unit'], dimension)}for example {dimension.example!r}"
        raise ValueError(msg)
    # The unit is known, so QuantiPhy only has to join number and prefix; it rounds once where the prefix is decimal.
    prefix = written.removesuffix(base)
    value = float(match["number"])
    if prefix and value and math.isfinite(value):
        value = float(_Reader(f"{_plain(match['number'])} {prefix}{base}", binary=True))
    factor, divisor = dimension.bases[base]
    value = value * factor / divisor
    if not math.isfinite(value):
        msg = f"{text!r} is not a finite quantity in {unit}, for example {dimension.example!r}"
        raise ValueError(msg)
    return value


def _hint(written: str, dimension: Dimension) -> str:
    """Name the unit that differs from the one written by its case alone, if any."""
    spellings = _SPELLINGS[dimension.symbol]
    alike = [known for known in spellings if known.lower() == written.lower()]
    if alike:
        return f"did you mean {alike[0]!r}? "
    elsewhere = [symbol for symbol, known in _SPELLINGS.items() if written in known]
    return f"{written!r} is {'of another kind' if elsewhere else 'no such unit'}, "


def format_quantity(value: float, unit: str) -> str:
    """Return the shortest text that :func:`read_quantity` reads as exactly ``value`` [``unit``].

    Raises :class:`ValueError` where the value is not finite.

    >>> format_quantity(85899345920.0, "B"), format_quantity(3.35e12, "B/s"), format_quantity(0.0005, "s")
    ('80 GiB', '3.35 TB/s', '500 us')
    """
    if not math.isfinite(value):
        msg = f"{value} is not a finite quantity in {unit}, for example {DIMENSIONS[unit].example!r}"
        raise ValueError(msg)
    best: tuple[bool, int] | None = None
    answer = f"{value!r} {unit}"
    for written, scale in _scales(unit).items():
        # Decimal, since 5e-06 / 1e-06 is not 5 in floats.
        number = float(Decimal(repr(value)) / scale)
        digits = repr(number).removesuffix(".0")
        rank = (not 1 <= abs(number) < 1000, len(digits))  # noqa: PLR2004 - the step between prefixes
        if (best is None or rank < best) and _reads_as(f"{digits} {written}", unit, value):
            best, answer = rank, f"{digits} {written}"
    return answer


def _reads_as(text: str, unit: str, value: float) -> bool:
    """Tell whether a text means exactly ``value``; near the ends of the floats it may be no quantity at all."""
    try:
        return _parse(text, unit) == value
    except ValueError:
        return False


@lru_cache
def _scales(unit: str) -> dict[str, Decimal]:
    """Value of one of each unit, as far as a bit is not written where a byte is meant."""
    bits = ("b/s", "bit/s")
    spellings = _SPELLINGS[unit].items()
    return {written: Decimal(repr(_parse(f"1 {written}", unit))) for written, base in spellings if base not in bits}


def read_time_of_day(text: object) -> float:
    """Return a time of day such as ``22:00`` in seconds after midnight.

    >>> read_time_of_day("22:00")
    79200.0
    """
    match = CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        msg = f"{_shown(text)} is not a time of day; write it as quoted text, for example '22:00'"
        raise ValueError(msg)
    return float(int(match["hour"]) * 3600 + int(match["minute"]) * 60 + int(match["second"] or 0))


def format_time_of_day(seconds: float) -> str:
    """Return seconds after midnight as a time of day.

    >>> format_time_of_day(79200.0)
    '22:00'
    """
    minutes, second = divmod(round(seconds), 60)
    clock = f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{clock}:{second:02d}" if second else clock


@dataclass(frozen=True, slots=True)
class Unit:
    """Marks a float as a quantity: text with this unit in a document, an SI float in the code."""

    symbol: str
    usual: str = ""
    """Unit that is offered for a bare number, where it is another one than the dimension's own."""

    @property
    def example(self) -> str:
        """A quantity of usual size."""
        return f"8 {self.usual}" if self.usual else DIMENSIONS[self.symbol].example

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read the text before the bounds of the field are checked; write text again."""
        return core_schema.no_info_before_validator_function(
            partial(read_quantity, unit=self.symbol, usual=self.usual),
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(
                partial(format_quantity, unit=self.symbol), return_schema=core_schema.str_schema(), when_used="json"
            ),
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Tell editors that the document holds text."""
        return {"type": "string", "examples": [self.example]}


@dataclass(frozen=True, slots=True)
class _Clock:
    """Marks a float as a time of day: ``22:00`` in a document, seconds after midnight in the code."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read and write the text."""
        return core_schema.no_info_before_validator_function(
            read_time_of_day,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(
                format_time_of_day, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Tell editors that the document holds text."""
        return {"type": "string", "examples": ["22:00"]}


Bytes = Annotated[float, Unit("B")]
"""An amount of memory [B]."""
Bandwidth = Annotated[float, Unit("B/s")]
"""Bytes a second [B/s]; ``Gb/s`` and ``Gbit/s`` are divided by 8."""
FlopRate = Annotated[float, Unit("FLOP/s")]
"""Floating-point operations a second [FLOP/s]."""
Seconds = Annotated[float, Unit("s")]
"""A duration [s]."""
Duration = Annotated[float, Unit("s", usual="h")]
"""A duration that people give in hours [s]."""
Rate = Annotated[float, Unit("req/s")]
"""Requests a second [req/s]."""
TokenRate = Annotated[float, Unit("tok/s")]
"""Tokens a second [tok/s]."""
Power = Annotated[float, Unit("W")]
"""Electrical power [W]."""
Money = Annotated[float, Unit("USD/h")]
"""A price for an hour [USD/h]."""
EnergyPrice = Annotated[float, Unit("USD/kWh")]
"""A price for energy [USD/kWh]."""
TimeOfDay = Annotated[float, _Clock()]
"""Seconds after midnight [s]."""
