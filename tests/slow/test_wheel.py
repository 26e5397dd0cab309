"""The wheel, in an empty environment: it holds everything, installs by itself, and gives the same answer."""

import contextlib
import os
import subprocess
import sys
import zipfile
from functools import partial
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


def interpreters() -> list[str]:
    """This Python, and others of those that the package is for: CRUST_PYTHONS names them, or the path has them."""
    named = os.environ.get("CRUST_PYTHONS", "").split(os.pathsep)
    others = [*filter(None, named), *(f"python3.{minor}" for minor in (10, 11, 12, 13))]
    found = {sys.version_info[:2]: sys.executable}
    for other in others:
        ask = [other, "-c", "import sys; print(*sys.version_info[:2])"]
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            done = subprocess.run(ask, capture_output=True, text=True, check=True, env=CLEAN)
            found.setdefault(tuple(map(int, done.stdout.split())), other)
    return list(found.values())


@pytest.mark.parametrize("python", interpreters())
def test_the_wheel_works_in_an_empty_environment(wheel, python, tmp_path):
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True, env=CLEAN)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    install = [scripts / "python", "-m", "pip", "install", "--quiet", "--no-compile", f"{wheel}[plot]"]
    subprocess.run(install, check=True, env=CLEAN)
    rng = np.random.default_rng(1)
    points, labels = rng.normal(size=(300, 6)).astype(np.float32), rng.integers(4, size=300)
    np.save(tmp_path / "f.npy", points)
    np.save(tmp_path / "g.npy", labels)
    words = "select f.npy -k 0.1 --groups g.npy -o c.parquet --plot c.png"
    run = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True, env=CLEAN)
    assert "30 of 300 points selected" in run([scripts / "crust", *words.split()]).stdout
    assert (tmp_path / "c.png").stat().st_size > 10_000
    run([scripts / "crust", *["train", "digits", "--limit", "200", "--epochs", "2", "-q", "-o", "run"]])
    run([scripts / "crust", *["audit", "run", "--top", "3", "-o", "audit.csv"]])
    assert len((tmp_path / "audit.csv").read_text().splitlines()) == 201

    found, expected = crust.Coreset.load(tmp_path / "c.parquet"), crust.select(points, 0.1, groups=labels)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
