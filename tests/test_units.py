"""Quantities: text with a unit at the door, SI floats behind it."""

import json
import math
from decimal import Decimal
from typing import Annotated

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError

from planner.spec.card import Card
from planner.units import (
    DIMENSIONS,
    Bandwidth,
    Bytes,
    Seconds,
    TimeOfDay,
    format_quantity,
    format_time_of_day,
    read_quantity,
    read_time_of_day,
)

DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
UNITS = st.sampled_from(sorted(DIMENSIONS))


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("80 GB", "B", 80e9),
        ("80 GiB", "B", 85_899_345_920),
        ("80GiB", "B", 85_899_345_920),
        ("1e3 B", "B", 1000),
        (" 1.5 kB ", "B", 1500),
        ("3.35 TB/s", "B/s", 3.35e12),
        ("1 GiB/s", "B/s", 2**30),
        ("400 Gb/s", "B/s", 50e9),
        ("400 Gbit/s", "B/s", 50e9),
        ("100 Mb/s", "B/s", 12.5e6),
        ("989.4 TFLOP/s", "FLOP/s", 989.4e12),
        ("200 ms", "s", 0.2),
        ("5 us", "s", 5e-6),
        ("5 µs", "s", 5e-6),
        ("5 \N{GREEK SMALL LETTER MU}s", "s", 5e-6),
        ("7 ns", "s", 7e-9),
        ("5 min", "s", 300),
        ("8 h", "s", 28_800),
        ("2 d", "s", 172_800),
        ("12 req/s", "req/s", 12),
        ("12 req/min", "req/s", 0.2),
        ("3600 req/h", "req/s", 1),
        ("2 ktok/s", "tok/s", 2000),
        ("10.2 kW", "W", 10_200),
        ("2.49 USD/h", "USD/h", 2.49),
        ("-3 s", "s", -3),
    ],
)
def test_text_is_read_exactly(text: str, unit: str, value: float) -> None:
    assert read_quantity(text, unit) == value


def test_every_listed_prefix_means_a_power_of_1000_or_1024() -> None:
    for symbol, dimension in DIMENSIONS.items():
        first = next(iter(dimension.bases))
        for prefix in dimension.prefixes:
            assert read_quantity(f"1 {prefix}{first}", symbol) == (DECIMAL | BINARY)[prefix], (symbol, prefix)


def test_every_listed_unit_is_its_factor() -> None:
    for symbol, dimension in DIMENSIONS.items():
        for unit, (factor, divisor) in dimension.bases.items():
            assert read_quantity(f"7 {unit}", symbol) == 7 * factor / divisor, (symbol, unit)


@pytest.mark.parametrize(
    ("value", "unit", "says"),
    [
        (500, "s", "500 has no unit; write it as text, for example '500 ms'"),
        ("500", "s", "500 has no unit; write it as text, for example '500 ms'"),
        (80, "B", "80 has no unit; write it as text, for example '80 GiB'"),
        (-1, "s", "-1 has no unit; write it as text, for example '200 ms'"),
        (float("nan"), "s", "nan has no unit"),
        (float("inf"), "B/s", "inf has no unit"),
        (True, "s", "True is not a quantity in s; write it as text, for example '200 ms'"),
        (None, "W", "None is not a quantity in W; write it as text, for example '700 W'"),
        (["80 GB"], "B", "for example '80 GiB'"),
        ("nan s", "s", "'nan s' is not a quantity in s, for example '200 ms'"),
        ("1e400 s", "s", "'1e400 s' is not a finite quantity in s, for example '200 ms'"),
        ("1 m", "s", "'m' is no such unit, for example '200 ms'"),
        ("5 S", "s", "did you mean 's'?"),
        ("80 Gb", "B", "did you mean 'GB'?"),
        ("80 KB", "B", "did you mean 'kB'?"),
        ("5 mB", "B", "did you mean 'MB'?"),
        ("3 kmin", "s", "'kmin' is no such unit"),
        ("1 GB", "B/s", "'GB' is of another kind, for example '3.35 TB/s'"),
        ("1,000 B", "B", "'1,000 B' is not a quantity in B, for example '80 GiB'"),
        ("1 s 2 ms", "s", "'1 s 2 ms' is not a quantity in s"),
        ("0x10 B", "B", "'0x10 B' is not a quantity in B"),
        ("\N{ARABIC-INDIC DIGIT ONE} s", "s", "is not a quantity in s"),
        ("", "s", "'' is not a quantity in s"),
        ("tdp = 5 W", "W", "is not a quantity in W"),
    ],
)
def test_what_is_no_quantity_is_told_with_its_value_and_an_example(value: object, unit: str, says: str) -> None:
    with pytest.raises(ValueError, match="for example") as caught:
        read_quantity(value, unit)
    assert says in str(caught.value)


def test_every_example_in_a_message_is_itself_read() -> None:
    for symbol, dimension in DIMENSIONS.items():
        assert read_quantity(dimension.example, symbol) > 0
        assert read_quantity(f"500 {dimension.usual}", symbol) > 0


@given(st.floats(allow_nan=False, allow_infinity=False), UNITS)
@example(5e-6, "s")
@example(85899345920.0, "B")
@example(5e-324, "B/s")
@example(1.7976931348623157e308, "s")
@example(-0.0, "W")
def test_what_is_written_is_read_as_the_same_float(value: float, unit: str) -> None:
    assert read_quantity(format_quantity(value, unit), unit) == value


@given(
    st.decimals(min_value=0, max_value=9999, places=2),
    st.integers(-12, 12),
    st.sampled_from(
        [("GB/s", "B/s"), ("ms", "s"), ("GiB", "B"), ("TFLOP/s", "FLOP/s"), ("kW", "W"), ("req/min", "req/s")]
    ),
)
def test_an_exponent_means_what_the_digits_written_out_mean(
    number: Decimal, power: int, units: tuple[str, str]
) -> None:
    """A factor of ten in front of a prefix is not taken for the prefix."""
    written, unit = units
    short = f"{number}e{power} {written}"
    long = f"{number.scaleb(power):f} {written}"
    if len(long) <= 40:
        assert read_quantity(short, unit) == read_quantity(long, unit)


@given(st.text(max_size=60) | st.from_regex(r"[0-9]{1,4}(\.[0-9])? ?[A-Za-z/]{0,6}", fullmatch=True), UNITS)
def test_any_text_is_a_finite_number_or_a_value_error_on_one_line(text: str, unit: str) -> None:
    try:
        value, message = read_quantity(text, unit), "for example"
    except ValueError as error:
        value, message = 0.0, str(error)
    assert math.isfinite(value)
    assert "for example" in message
    assert len(message.splitlines()) == 1
    assert len(message) < 250


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (85899345920.0, "B", "80 GiB"),
        (80e9, "B", "80 GB"),
        (3.35e12, "B/s", "3.35 TB/s"),
        (50e9, "B/s", "50 GB/s"),
        (0.0005, "s", "500 us"),
        (28800.0, "s", "8 h"),
        (0.0, "s", "0 s"),
        (700.0, "W", "700 W"),
    ],
)
def test_the_shortest_text_is_written(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="is not a finite quantity in s, for example '200 ms'"):
        format_quantity(value, "s")


@pytest.mark.parametrize(("text", "seconds"), [("22:00", 79200), ("0:00", 0), ("06:30", 23400), ("23:59:59", 86399)])
def test_a_time_of_day_is_seconds_after_midnight(text: str, seconds: float) -> None:
    assert read_time_of_day(text) == seconds


@pytest.mark.parametrize("value", ["24:00", "22", 1320, "22:60", None, "10 pm", 22.0])
def test_what_is_no_time_of_day_is_told_with_an_example(value: object) -> None:
    with pytest.raises(ValueError, match="is not a time of day; write it as quoted text, for example '22:00'"):
        read_time_of_day(value)


@given(st.integers(min_value=0, max_value=86399))
def test_a_time_of_day_is_written_as_it_is_read(seconds: int) -> None:
    assert read_time_of_day(format_time_of_day(seconds)) == seconds


class Part(Card):
    """A card with quantities in every position."""

    memory: Bytes = Field(gt=0)
    link: Bandwidth | None = Field(default=None, gt=0)
    times: dict[str, Seconds] = Field(default_factory=dict)
    start: TimeOfDay = 0.0


def test_a_dumped_card_is_read_again() -> None:
    part = Part.model_validate(
        {"memory": "80 GiB", "link": "400 Gb/s", "times": {"first": "200 ms"}, "start": "22:00"},
    )
    dumped = part.model_dump_json()
    assert json.loads(dumped) == {"memory": "80 GiB", "link": "50 GB/s", "times": {"first": "200 ms"}, "start": "22:00"}
    assert Part.model_validate_json(dumped) == part


@pytest.mark.parametrize("wrong", [{"memory": "-1 B"}, {"memory": "0 B"}, {"memory": "1 B", "link": "-1 GB/s"}])
def test_a_senseless_sign_is_refused_by_the_bounds_of_the_field(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        Part.model_validate(wrong)


def test_the_json_schema_holds_text_with_an_example() -> None:
    schema = TypeAdapter(Annotated[Bytes, Field(gt=0)]).json_schema()
    assert schema == {"type": "string", "examples": ["80 GiB"]}
    assert TypeAdapter(TimeOfDay).json_schema() == {"type": "string", "examples": ["22:00"]}
