"""Figures for people: three significant digits in the unit of usual size. Exact figures are in the JSON."""

Scales = tuple[tuple[float, float, str], ...]
"""Least value, divisor and unit, largest first."""

SCALES: dict[str, Scales] = {
    "s": ((7200, 3600, "h"), (120, 60, "min"), (1, 1, "s"), (1e-3, 1e-3, "ms"), (0, 1e-6, "us")),
    "B": ((2**40, 2**40, "TiB"), (2**30, 2**30, "GiB"), (2**20, 2**20, "MiB"), (2**10, 2**10, "KiB"), (0, 1, "B")),
    "B/s": ((1e12, 1e12, "TB/s"), (1e9, 1e9, "GB/s"), (1e6, 1e6, "MB/s"), (0, 1, "B/s")),
    "W": ((1e6, 1e6, "MW"), (1e3, 1e3, "kW"), (0, 1, "W")),
}
"""Units by the SI unit that an answer has."""


def number(value: float) -> str:
    """Write three significant digits, and all digits of a larger integer part.

    >>> number(0.84231), number(98.24), number(1234.6), number(16.0)
    ('0.842', '98.2', '1,235', '16')
    """
    if abs(value) >= 100:  # noqa: PLR2004 - from here the integer part alone has three digits
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def _scale(size: float, unit: str) -> tuple[float, str]:
    scales = SCALES.get(unit, ((0, 1, unit),))
    return next((divisor, name) for least, divisor, name in scales if abs(size) >= least * (1 - 1e-9))


def quantity(value: float, unit: str) -> str:
    """Write a quantity in SI units in the unit of usual size.

    >>> quantity(0.3124, "s"), quantity(18700, "s"), quantity(4.4e10, "B"), quantity(12.0, "req/s"), quantity(3, "")
    ('312 ms', '5.19 h', '41 GiB', '12 req/s', '3')
    """
    divisor, name = _scale(value, unit) if value else (1, unit)
    return f"{number(value / divisor)} {name}".rstrip()


def against(value: float | None, limit: float, unit: str) -> str:
    """Write a figure and its limit in the unit of the limit.

    >>> against(0.3124, 0.5, "s"), against(None, 0.5, "s")
    ('312 of 500 ms', 'n/a of 500 ms')
    """
    divisor, _ = _scale(limit, unit)
    return f"{'n/a' if value is None else number(value / divisor)} of {quantity(limit, unit)}"


def interval(band: tuple[float | None, float | None] | None, like: float, unit: str) -> str:
    """Write a band in the unit in which ``like`` is written; an end without a value is open.

    >>> interval((0.29, 0.335), 0.5, "s"), interval((0.29, None), 0.5, "s"), interval(None, 0.5, "s")
    ('290 to 335', '290 and up', '')
    """
    low, high = band or (None, None)
    divisor, _ = _scale(like, unit)
    if low is None:
        return "" if high is None else f"up to {number(high / divisor)}"
    return f"{number(low / divisor)} and up" if high is None else f"{number(low / divisor)} to {number(high / divisor)}"


def percent(share: float | None) -> str:
    """Write a share in per cent, with more digits near 100.

    >>> percent(0.9824), percent(0.99953), percent(None), percent(1.0)
    ('98.2 %', '99.95 %', 'none', '100 %')
    """
    if share is None:
        return "none"
    near_one = 0.99 <= share < 1  # noqa: PLR2004 - where a tenth of a per cent hides the difference
    digits = f"{share * 100:.{2 if near_one else 1}f}"
    return f"{digits.rstrip('0').rstrip('.')} %"


def shares(values: tuple[float, ...], required: float) -> list[str]:
    """Write shares in per cent, without the sign, as fine as the required share asks for.

    >>> shares((0.9824, 0.97), 0.95), shares((0.9991, 1.0), 0.999)
    (['98.2', '97.0'], ['99.91', '100.00'])
    """
    digits = 2 if required >= 0.99 else 1  # noqa: PLR2004 - as in percent
    return [f"{value * 100:.{digits}f}" for value in values]


def rank(percentile: float) -> str:
    """Write a percentile as people say it.

    >>> rank(95.0), rank(99.9)
    ('p95', 'p99.9')
    """
    return f"p{percentile:g}"


def plural(count: int, noun: str) -> str:
    """Write a count and its noun.

    >>> plural(1, "node"), plural(1200, "node")
    ('1 node', '1,200 nodes')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
