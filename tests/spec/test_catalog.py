"""Documents by name, own ones first, and a scenario held against the cards that it names."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import planner
from planner.errors import InputError
from planner.spec.catalog import KINDS, Catalog, Kind, largest, resolve, shipped, version_key
from planner.spec.folders import _FOLDERS
from planner.spec.scenario import Lengths, Scenario

MODEL = """\
name: tiny
title: Tiny
repositories: [Some-Org/Tiny-1B]
sources: {config: the checkpoint's configuration}
dimensions: config
parameters: {total: 1000, source: config}
checkpoints: {bf16: {source: config}, mxfp4: {source: config}}
max_context: 8192
hidden: 64
vocabulary: 1000
layers:
  - count: 2
    attention: {kind: gqa, heads: 4, kv_heads: 2, head_dim: 16}
    ffn: {kind: dense, intermediate: 128}
"""
HARDWARE = (
    """\
name: box
title: Box
vendor: nobody
family: none
sources: {sheet: a data sheet}
memory: {capacity: 80 GiB, usable: 79 GiB, bandwidth: 3 TB/s, source: sheet}
peak: {rates: {bf16: 900 TFLOP/s}, source: sheet}
tdp: 700 W
tdp_source: sheet
scale_up: &link
host: {bandwidth: 50 GB/s, source: sheet}
""".replace(
        "scale_up: &link\n",
        "".join(
            f"scale_{way}: {{technology: wire, bandwidth: 50 GB/s, latency: 2 us, domain: 8, source: sheet}}\n"
            for way in ("up", "out")
        ),
    )
    + """\
node: {accelerators: 8, dram: 1 TiB, source: sheet}
storage: {capacity: 10 TB, bandwidth: 5 GB/s, source: sheet}
price: {per_hour: 2 USD/h, date: "2025", source: assumed}
"""
)
VERSION = """\
  - since: "{since}"
    scheduling:
      {{steps: mixed, token_budget: 8192, max_batch: 256, admission: optimistic, graph_batch: 512, source: assumed}}
    caching: {{block: 16, prefix: true, kv_formats: [{formats}], source: assumed}}
    reserve: {{fraction: 0.9, fixed: 1 GiB, fixed_parallel: 2 GiB, source: assumed}}
    parallelism: {{source: assumed}}
    startup: {{init: 30 s, source: assumed}}
"""
ENGINE = (
    "name: loom\ntitle: Loom\naliases: [loom-engine]\nsources: {docs: its manual}\nflags: {}\nversions:\n"
    + VERSION.format(since="0.9.2", formats="bf16")
    + VERSION.format(since="0.11", formats="bf16, fp8")
)
COLLECTIVE = "{ring: {2: {latency: 5 us, bandwidth: 40 GB/s}}, basis: assumed, band: 0.5, source: assumed}"
EFFICIENCY = f"""\
hardware: box
engine: loom
version: "0.11"
sources: {{none: nothing}}
formats:
  bf16: {{gemm: {{compute: 0.7, memory: 0.8, kernel: 5 us, basis: assumed, band: 0.5, source: assumed}}}}
collectives:
  all_reduce: {COLLECTIVE}
  all_gather: {COLLECTIVE}
  reduce_scatter: {COLLECTIVE}
  all_to_all: {COLLECTIVE}
scale_out: {{bandwidth: 0.8, latency: 5 us, basis: assumed, band: 0.5, source: assumed}}
overhead:
  per_layer: 5 us
  per_step: 1 ms
  per_sequence: 10 us
  per_prefill: 2 ms
  basis: assumed
  band: 0.5
  source: assumed
imbalance: {{experts: 1.2, basis: assumed, band: 0.5, source: assumed}}
"""
SCENARIO = """\
name: small
cluster:
  inventory:
    - {hardware: box, nodes: 2}
engine: {name: loom, version: "0.12.1"}
workloads:
  - name: chat
    model: some-org/tiny-1b
    weights_dtype: fp8
    traffic: {rate: 1 req/s}
    lengths: {input: {constant: 4000}, output: {constant: 4192}}
    promise: {ttft: 500 ms, tpot: 50 ms}
"""
FILES: dict[Kind, tuple[str, str]] = {
    "model": ("tiny", MODEL),
    "hardware": ("box", HARDWARE),
    "engine": ("loom", ENGINE),
    "efficiency": ("box--loom", EFFICIENCY),
    "scenario": ("small", SCENARIO),
}


@pytest.fixture(params=["folders", "flat"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Folder of own cards, laid out in both ways."""
    for kind, (name, text) in FILES.items():
        folder = tmp_path / _FOLDERS[kind][0] if request.param == "folders" else tmp_path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
    return tmp_path


def told(caught: pytest.ExceptionInfo[InputError], folder: Path) -> list[str]:
    """Return the faults without the name of the folder."""
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def write(own: Path, kind: Kind, old: str, new: str) -> Path:
    """Change an own document."""
    name, text = FILES[kind]
    path = next(own.rglob(f"{name}.yaml"))
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_own_documents_are_found_and_read(own: Path) -> None:
    catalog = Catalog((own,))
    assert catalog.model("tiny").context == 8192
    assert catalog.hardware("box").memory.bandwidth == 3e12
    assert catalog.engine("loom").versions[1].caching.kv_formats == ("bf16", "fp8")
    assert catalog.efficiency("box", "loom").overhead.per_step == 1e-3
    assert catalog.scenario("small") == catalog.scenario(next(own.rglob("small.yaml")))
    for kind, (name, _) in FILES.items():
        assert name in catalog.names(kind)


def test_a_model_goes_by_its_repositories_and_an_engine_by_its_aliases(own: Path) -> None:
    catalog = Catalog((own,))
    assert catalog.model("some-org/TINY-1b") is catalog.model("tiny")
    assert catalog.engine("Loom-Engine") is catalog.engine("loom")
    assert catalog.hardware("BOX") is catalog.hardware("box")


def test_each_document_is_read_once(own: Path) -> None:
    catalog = Catalog((own,))
    card = catalog.model("tiny")
    shutil.rmtree(own)
    assert catalog.model("tiny") is card


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("model", "tinny", "there is no model 'tinny'; did you mean 'tiny'?"),
        ("model", "sum-org/tiny-1b", "did you mean 'some-org/tiny-1b'?"),
        ("model", "../models/tiny", "there is no model '../models/tiny'"),
        ("engine", "loon", "there is no engine 'loon'; did you mean 'loom'?"),
        ("hardware", "bix", "there is no hardware card 'bix'; did you mean 'box'?"),
        ("scenario", "smal", "there is no scenario 'smal'; did you mean 'small'?"),
        ("model", "", "there is no model ''"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_one(own: Path, kind: Kind, name: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        Catalog((own,)).file(kind, name)
    assert says in str(caught.value)
    assert len(caught.value.faults) == 1


def test_own_documents_come_before_shipped_ones(tmp_path: Path) -> None:
    name = Catalog().names("model")[0]
    (tmp_path / f"{name}.yaml").write_text(MODEL.replace("name: tiny", f"name: {name}"))
    assert Catalog((tmp_path,)).model(name).title == "Tiny"
    assert Catalog().model(name).title != "Tiny"
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / f"{name}.yaml").write_text(
        MODEL.replace("name: tiny", f"name: {name}").replace("Tiny", "Second")
    )
    assert Catalog((tmp_path / "second", tmp_path)).model(name).title == "Second"


@pytest.mark.parametrize("kind", ["model", "hardware", "engine", "efficiency"])
def test_the_name_of_a_card_is_the_name_of_its_file(own: Path, kind: Kind) -> None:
    name, text = FILES[kind]
    path = next(own.rglob(f"{name}.yaml"))
    path.rename(path.with_stem("other"))
    catalog = Catalog((own,))
    read = {"model": catalog.model, "hardware": catalog.hardware, "engine": catalog.engine}
    with pytest.raises(InputError) as caught:
        catalog.efficiency("other", "x") if kind == "efficiency" else read[kind]("other")
    if kind == "efficiency":
        assert "there is no efficiency card 'other--x'" in str(caught.value)
    else:
        line = told(caught, path.parent)[0]
        assert (
            line
            == f"other.yaml:1: name: {name!r} is not the name of the file; name it 'other', or the file {name}.yaml"
        )
    assert text


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none: is not a directory of cards, for example --cards cards"):
        Catalog((tmp_path / "none",)).names("model")


def test_a_path_that_no_system_opens_is_no_folder() -> None:
    with pytest.raises(InputError, match="is not a directory of cards"):
        Catalog((Path("x" * 999),)).names("model")


def test_two_own_documents_of_one_name_are_told(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny.yaml").write_text(MODEL)
    (tmp_path / "tiny.yml").write_text(MODEL)
    with pytest.raises(InputError) as caught:
        Catalog((tmp_path,)).model("tiny")
    assert told(caught, tmp_path) == ["tiny.yml: is a second model 'tiny' beside models/tiny.yaml; remove one"]


def test_other_documents_in_an_own_folder_are_no_cards(tmp_path: Path) -> None:
    (tmp_path / "budgets.yaml").write_text("budgets: [{metric: nodes, max: 16}]\n")
    (tmp_path / "notes.txt").write_text("nothing")
    catalog = Catalog((tmp_path,))
    assert [catalog.names(kind) for kind in KINDS] == [Catalog().names(kind) for kind in KINDS]


def test_a_case_has_all_its_cards_by_their_own_names(own: Path) -> None:
    catalog = Catalog((own,))
    case = resolve(catalog.scenario("small"), catalog, catalog.scenario_file("small"))
    assert case.models == {"tiny": catalog.model("tiny")}
    assert [work.model for work in case.scenario.workloads] == ["tiny"]
    assert case.hardware == {"box": catalog.hardware("box")}
    assert case.engine is catalog.engine("loom")
    assert case.behaviour.since == "0.11"
    assert case.efficiencies == {"box": catalog.efficiency("box", "loom")}


@pytest.mark.parametrize(
    ("old", "new"),
    [("hardware: box", "hardware: BOX"), ("name: loom", "name: Loom-Engine"), ("some-org/tiny-1b", "TINY")],
)
def test_any_spelling_of_a_name_gives_the_same_case(own: Path, old: str, new: str) -> None:
    catalog = Catalog((own,))
    usual = resolve(catalog.scenario("small"), catalog)
    again = Catalog((own,))
    assert resolve(again.scenario(write(own, "scenario", old, new)), again) == usual


@pytest.mark.parametrize("other", ["box, nodes: 2", "box, nodes: 3, price: 9 USD/h", "Box, nodes: 1"])
def test_hardware_that_is_listed_twice_is_told(own: Path, other: str) -> None:
    path = write(
        own, "scenario", "{hardware: box, nodes: 2}", f"{{hardware: box, nodes: 2}}\n    - {{hardware: {other}}}"
    )
    catalog = Catalog((own,))
    with pytest.raises(InputError) as caught:
        resolve(catalog.scenario(path), catalog, path)
    (line,) = told(caught, path.parent)
    assert line.startswith("small.yaml:5: cluster.inventory.1.hardware: ")
    assert "is listed twice; sum the nodes" in line


@pytest.mark.parametrize(
    ("version", "since"), [("0.9.2", "0.9.2"), ("0.10.1", "0.9.2"), ("0.11.0", "0.11"), ("1", "0.11")]
)
def test_a_version_behaves_as_the_newest_one_listed_before(own: Path, version: str, since: str) -> None:
    path = write(own, "scenario", "0.12.1", version)
    catalog = Catalog((own,))
    assert resolve(catalog.scenario(path), catalog, path).behaviour.since == since


def test_everything_that_does_not_fit_together_is_told_at_once(own: Path) -> None:
    path = own / "wrong.yaml"
    text = SCENARIO.replace("hardware: box", "hardware: bax").replace("0.12.1", "0.9.1")
    text = text.replace("weights_dtype: fp8", "weights_dtype: nvfp4").replace("4192", "4193")
    more = text[text.index("  - name: chat") :].replace("chat", "more").replace("some-org/tiny-1b", "tinny")
    path.write_text(text + more)
    catalog = Catalog((own,))
    with pytest.raises(InputError) as caught:
        resolve(catalog.scenario(path), catalog, path)
    expected = """\
wrong.yaml:4: cluster.inventory.0.hardware: there is no hardware card 'bax'; did you mean 'box'?
wrong.yaml:5: engine.version: '0.9.1' is older than 0.9.2, the oldest version of loom that is known, \
for example version: '0.9.2'
wrong.yaml:9: workloads.0.weights_dtype: 'nvfp4' is no checkpoint of tiny, which can be served as \
bf16, fp8, int4, int8, mxfp4
wrong.yaml:11: workloads.0.lengths: input of up to 4000 and output of up to 4193 tokens exceed the context \
of tiny, 8192 tokens; shorten them to 8192 in sum
wrong.yaml:14: workloads.1.model: there is no model 'tinny'; did you mean 'tiny'?"""
    assert sorted(told(caught, own)) == sorted(expected.splitlines())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("fp8", "fp8\n    kv_dtype: fp8", None),
        ("0.12.1", "0.10", None),
        ("weights_dtype: fp8", "weights_dtype: mxfp4", None),
        ("weights_dtype: fp8", "weights_dtype: int4", None),
        ("loom", "lom", "engine.name: there is no engine 'lom'; did you mean 'loom'?"),
    ],
)
def test_what_fits_is_accepted(own: Path, old: str, new: str, says: str | None) -> None:
    path = write(own, "scenario", old, new)
    catalog = Catalog((own,))
    if says is None:
        assert resolve(catalog.scenario(path), catalog, path).engine.name == "loom"
    else:
        with pytest.raises(InputError) as caught:
            resolve(catalog.scenario(path), catalog, path)
        assert says in str(caught.value)


def test_a_kv_format_that_the_version_does_not_serve_is_told(own: Path) -> None:
    path = write(own, "scenario", "weights_dtype: fp8", "kv_dtype: fp8")
    path.write_text(path.read_text().replace("0.12.1", "0.10"))
    catalog = Catalog((own,))
    with pytest.raises(
        InputError, match=r"kv_dtype: 'fp8' is no KV format of the engine since 0.9.2, which serves bf16"
    ):
        resolve(catalog.scenario(path), catalog, path)


def test_hardware_without_efficiencies_is_told_with_hardware_that_has_some(own: Path) -> None:
    next(own.rglob("box--loom.yaml")).unlink()
    catalog = Catalog((own,))
    with pytest.raises(InputError, match="no efficiency card says how fast loom is on 'box'; there are some for"):
        resolve(catalog.scenario("small"), catalog)


def test_a_card_at_fault_is_told_with_its_own_file_and_line(own: Path) -> None:
    path = write(own, "model", "hidden: 64", "hidden: -64")
    write(own, "scenario", "some-org/tiny-1b", "tiny")
    catalog = Catalog((own,))
    with pytest.raises(InputError) as caught:
        resolve(catalog.scenario("small"), catalog, catalog.scenario_file("small"))
    assert told(caught, path.parent) == ["tiny.yaml:9: hidden: -64 must be more than 0, for example hidden: 8"]


def test_a_card_that_cannot_be_read_is_told_beside_a_name_that_is_unknown(own: Path) -> None:
    path = write(own, "model", "hidden: 64", "hidden: -64")
    with pytest.raises(InputError) as caught:
        Catalog((own,)).model("some-org/tiny-1b")
    unknown, unread = told(caught, path.parent)
    assert unknown.startswith("there is no model 'some-org/tiny-1b'; ")
    assert unread == "tiny.yaml:9: hidden: -64 must be more than 0, for example hidden: 8"


def test_faults_without_a_file_name_the_field_alone(own: Path) -> None:
    catalog = Catalog((own,))
    scenario = catalog.scenario(write(own, "scenario", "hardware: box", "hardware: bax"))
    with pytest.raises(InputError) as caught:
        resolve(scenario, catalog)
    assert str(caught.value) == "cluster.inventory.0.hardware: there is no hardware card 'bax'; did you mean 'box'?"


def test_versions_are_ordered_by_number() -> None:
    versions = ["0.9.2", "0.10", "0.11", "0.11.1", "1", "10.0", "25.5"]
    assert sorted(frozenset(versions), key=version_key) == versions
    assert version_key("0.11") == version_key("0.11.0")
    assert version_key("9" * 5000) > version_key("25.5")


def test_the_largest_length_is_the_largest_stated() -> None:
    assert largest(Lengths(constant=7)) == 7
    assert largest(Lengths(p50=10, p99=90)) == 90
    assert largest(Lengths(quantiles={0: 20, 100: 80}, mean=100)) == 160


@pytest.mark.parametrize("kind", list(KINDS))
def test_shipped_documents_are_found_beside_or_inside_the_package(kind: Kind) -> None:
    assert Catalog().names(kind)
    assert shipped() in {Path(planner.__file__).parent / "data", Path(planner.__file__).parent.parent}


def test_every_shipped_scenario_fits_its_cards() -> None:
    catalog = Catalog()
    for name in catalog.names("scenario"):
        case = resolve(catalog.scenario(name), catalog, catalog.scenario_file(name))
        assert isinstance(case.scenario, Scenario)
        assert case.scenario.name == name


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_schema_for_editors_accepts_every_shipped_document(kind: Kind) -> None:
    schema = KINDS[kind].model_json_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    catalog = Catalog()
    for name in catalog.names(kind):
        assert list(validator.iter_errors(catalog.document(catalog.file(kind, name)).value)) == [], name
    assert list(validator.iter_errors({"name": "orbit"})) != []
    assert not set(bounds(schema)) & {"gt", "ge", "lt", "le"}


def bounds(schema: object) -> Iterator[str]:
    """Yield the keywords of a schema."""
    if isinstance(schema, dict):
        for key, below in schema.items():
            yield key
            yield from bounds(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from bounds(below)
