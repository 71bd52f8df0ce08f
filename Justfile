python := ".venv/bin/python"

# List the recipes
default:
    @just --list

# Make an environment for work on planner: editable, so that changes count at once
setup:
    python3 -m venv .venv
    .venv/bin/pip install -q -e '.[test]'

# Run the tests, all or those that are named
test *arguments:
    {{ python }} -P -m pytest {{ arguments }}

# Check form, types, floors and spelling
lint:
    .venv/bin/ruff check .
    .venv/bin/ruff format --check .
    .venv/bin/mypy
    .venv/bin/lint-imports
    .venv/bin/codespell

# Put the sources into the house's form
format:
    .venv/bin/ruff check --fix .
    .venv/bin/ruff format .

# Write the generated documents anew
docs:
    {{ python }} -m planner.cli.reference > docs/reference/cli.md.part
    mv docs/reference/cli.md.part docs/reference/cli.md
    {{ python }} -m planner.report.reference docs/reference

# Write the golden plans anew; review the difference that it prints
golden:
    {{ python }} benchmarks/golden.py

# What continuous integration does
check:
    .ci/run
