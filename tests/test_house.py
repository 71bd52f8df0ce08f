"""The house stays readable: sizes, floors, and a package that carries its cards."""

import ast
from collections.abc import Iterator
from pathlib import Path

import planner

PACKAGE = Path(planner.__file__).parent
LONGEST_MODULE = 350
LONGEST_FUNCTION = 60
MOST_ARGUMENTS = 7

MODULES = sorted(PACKAGE.rglob("*.py"))


def functions(module: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def place(module: Path) -> str:
    return module.relative_to(PACKAGE.parent).as_posix()


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring, which may be as long as a small paper."""
    start = node.lineno
    if ast.get_docstring(node) is not None:
        start = node.body[0].end_lineno or start
    return (node.end_lineno or start) - start + 1


def test_there_is_a_house_to_look_at() -> None:
    assert len(MODULES) > 20
    assert sum(1 for module in MODULES for _ in functions(module)) > 50


def test_modules_fit_into_a_head() -> None:
    lengths = {place(module): len(module.read_text(encoding="utf-8").splitlines()) for module in MODULES}
    assert {name: lines for name, lines in lengths.items() if lines >= LONGEST_MODULE} == {}


def test_functions_fit_on_a_page() -> None:
    long = {
        f"{place(module)}:{node.lineno} {node.name}": length(node)
        for module in MODULES
        for node in functions(module)
        if length(node) >= LONGEST_FUNCTION
    }
    assert long == {}


def test_functions_take_few_arguments() -> None:
    def count(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        return len([name for name in names if name not in {"self", "cls"}])

    # A command takes one argument for each of its options.
    many = {
        f"{place(module)}:{node.lineno} {node.name}": count(node)
        for module in MODULES
        for node in functions(module)
        if count(node) > MOST_ARGUMENTS and place(module) != f"planner/cli/{node.name}.py"
    }
    assert many == {}


def test_only_commands_and_reports_speak() -> None:
    speakers = {
        place(module)
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert {name for name in speakers if name.split("/")[1] not in {"cli", "report"}} == set()


def test_every_module_says_what_it_is() -> None:
    silent = [place(m) for m in MODULES if not ast.get_docstring(ast.parse(m.read_text(encoding="utf-8")))]
    assert silent == []
