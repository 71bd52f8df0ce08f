"""The decisions of shipped scenarios change only on purpose: `just golden` writes them anew, for review."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from planner.spec.catalog import Catalog

NAMES = Catalog().names("scenario")


@pytest.fixture(scope="module")
def golden(root: Path) -> ModuleType:
    spec = spec_from_file_location("golden", root / "benchmarks" / "golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_scenario_is_decided_as_before(golden: ModuleType, name: str) -> None:
    changes = golden.difference(name)
    assert not changes, f"the plan of {name} changed; if it should, run 'just golden' and review:\n{changes}"


def test_every_golden_plan_has_a_scenario(golden: ModuleType) -> None:
    assert sorted(path.stem for path in golden.FOLDER.glob("*.json")) == sorted(NAMES)
