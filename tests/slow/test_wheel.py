"""The wheel, in an empty environment: it holds everything, installs by itself, and gives the same answer."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import crust

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# An empty environment must not see the source folder.
CLEAN = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], check=True, env=CLEAN)
    (built,) = folder.glob("crust_learn-*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {f"crust/{path.relative_to(ROOT / 'src' / 'crust')}" for path in (ROOT / "src" / "crust").rglob("*.py")}
    assert sources <= names
    assert {name.split("/")[0] for name in names} == {"crust", wheel.name.split("-py3")[0] + ".dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, env=CLEAN)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([scripts / "python", "-m", "pip", "install", "--quiet", f"{wheel}[plot]"], check=True, env=CLEAN)
    rng = np.random.default_rng(1)
    points, labels = rng.normal(size=(300, 6)).astype(np.float32), rng.integers(4, size=300)
    np.save(tmp_path / "f.npy", points)
    np.save(tmp_path / "g.npy", labels)
    words = [
        scripts / "crust",
        "select",
        "f.npy",
        "-k",
        "0.1",
        "--groups",
        "g.npy",
        "-o",
        "c.parquet",
        "--plot",
        "c.png",
    ]
    done = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True, env=CLEAN)
    assert "30 of 300 points selected" in done.stdout
    assert (tmp_path / "c.png").stat().st_size > 10_000

    found, expected = crust.Coreset.load(tmp_path / "c.parquet"), crust.select(points, 0.1, groups=labels)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
