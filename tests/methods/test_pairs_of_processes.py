"""Methods with two networks in two real processes: both processes end with the same two networks and opinions."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
OWN = {
    "decoupling": {},
    "co-teaching": {"noise_rate": 0.3},
    "dividemix": {"noise_rate": 0.5, "warmup": 1},
}
SCRIPT = """
    import json, sys
    from pathlib import Path
    import numpy as np
    from tests.training.common import examples, fit, network, told

    folder, method, own = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    model = network(norm=True, dropout=0.1)
    settings = dict(method=method, data=examples(83), model=model, epochs=4, batch_size=8, **own)
    whole = fit(**settings)
    fit(**settings, run_dir=folder / "run", stop_after=2)
    resumed = fit(**settings, run_dir=folder / "run", resume=True)
    context = whole.recorder.context
    for name, result in (("whole", whole), ("resumed", resumed)):
        context = result.recorder.context
        found = {f"{k}.{key}": value.numpy() for k in range(2)
                 for key, value in context.processes.bare(context.networks[k]).state_dict().items()}
        opinions = result.recorder.state.plan.method.opinions()
        np.savez(folder / f"{name}{context.processes.rank}.npz", **found, **opinions)
    (folder / f"told{context.processes.rank}.json").write_text(json.dumps([told(whole.history), told(resumed.history)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", OWN)
def test_two_processes_end_with_the_same_networks_and_resume(tmp_path, method):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    }
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment |= {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *start, str(script), str(tmp_path), method, json.dumps(OWN[method])],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, *others = [dict(np.load(tmp_path / f"{name}{rank}.npz")) for name in ("whole", "resumed") for rank in (0, 1)]
    assert any("running_mean" in name for name in first)
    for other in others:
        assert other.keys() == first.keys()
        for name, value in first.items():
            assert np.array_equal(other[name], value, equal_nan=True), name
    assert not np.array_equal(first["0.0.weight"], first["1.0.weight"])
    histories = [json.loads((tmp_path / f"told{rank}.json").read_text()) for rank in (0, 1)]
    assert histories[0][0] == histories[0][1]
    assert histories[0] == histories[1]
