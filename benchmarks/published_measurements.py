"""Write ``hardware/measurements/published.csv``: the measurements that ship, as figures with their source.

Run ``python -m benchmarks.published_measurements``. Figures are read from ``$PLANNER_SHARED`` (default: ``shared``
beside the repository). Only sources whose terms allow it are taken: MLPerf Inference results, the performance pages of
TensorRT-LLM, Splitwise's measurements, AMD's vLLM images, Google's recipes. Notes stay out: they are others' words.
"""

import csv
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "hardware" / "measurements" / "published.csv"
SHIPPED = (
    "google_tpu_recipes",
    "mlperf_inference",
    "rocm_vllm_docker",
    "splitwise_sim",
    "trtllm_perf",
    "trtllm_serving",
)
"""How the names of the sources begin that may be shipped."""


def main() -> None:
    """Write the table."""
    shared = Path(os.environ.get("PLANNER_SHARED", ROOT.parent / "shared"))
    with (shared / "measured" / "development.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["source"].startswith(SHIPPED)]
    names = [name for name in rows[0] if name != "notes"]
    part = TARGET.with_suffix(".part")
    with part.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["source"], row["id"])))
    part.replace(TARGET)


if __name__ == "__main__":
    main()
