"""What all tests share: the repository's documents, the shared material, and how hypothesis searches."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

import planner

ROOT = Path(os.environ.get("PLANNER_ROOT", Path(__file__).parent.parent)).resolve()
"""Folder that holds README.md and docs/. Tests may be copied away from it; PLANNER_ROOT then says where it is."""
SHARED = Path(os.environ.get("PLANNER_SHARED", ROOT.parent / "shared")).resolve()
"""Published measurements, traces and catalogues, which the project may read but never ships."""

LEFT_OUT = pytest.StashKey[int]()
"""How many tests were left out for want of the shared material."""

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("local", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "local"))


def pytest_report_header() -> str:
    """Say which planner is under test."""
    return f"planner {planner.__version__} from {Path(planner.__file__).parent}"


def pytest_configure() -> None:
    """Refuse to test the checkout where the installed package is meant."""
    if os.environ.get("PLANNER_INSTALLED") and Path(planner.__file__).resolve().is_relative_to(ROOT / "planner"):
        message = f"planner was imported from the checkout ({planner.__file__}), not from where it is installed"
        raise pytest.UsageError(message)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, and count, what needs the shared material where it is missing; in CI it may not be missing."""
    needy = [item for item in items if item.get_closest_marker("shared")]
    if SHARED.is_dir() or not needy:
        return
    if os.environ.get("CI"):
        message = f"{len(needy)} tests need the shared material, which is not at {SHARED}: set PLANNER_SHARED"
        raise pytest.UsageError(message)
    items[:] = [item for item in items if not item.get_closest_marker("shared")]
    config.hook.pytest_deselected(items=needy)
    config.stash[LEFT_OUT] = len(needy)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were left out, so that nobody takes them for passed."""
    if count := config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{count} tests left out: they need the shared material, which is not at {SHARED} (set PLANNER_SHARED)"
        )


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder that holds README.md and docs/."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the shared material; only for tests marked ``shared``."""
    assert SHARED.is_dir(), f"no shared material at {SHARED}: mark the test with 'shared'"
    return SHARED
