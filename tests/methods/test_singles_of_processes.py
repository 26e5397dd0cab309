"""mentornet, d2l and elr in two real processes: both end with the same network, state and opinions, and resume."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
OWN = [
    ("elr", {"noise_type": "symmetric"}),
    ("d2l", {"initial": 0, "window": 2, "deviations": 0.0, "least_rise": 0.0, "examples": 48, "group": 16}),
    ("mentornet", {"variant": "self-paced"}),
    ("mentornet", {"variant": "pd", "noise_rate": 0.3, "mentor_steps": 40}),
    ("mentornet", {"variant": "dd", "noise_rate": 0.3, "mentor_steps": 40, "clean_share": 0.3}),
]
SCRIPT = """
    import json, sys
    from pathlib import Path
    import numpy as np
    from crust.training.checkpoint import flatten
    from tests.training.common import clouds, examples, fit, network, told

    folder, history = Path(sys.argv[1]), []
    for number, (method, own) in enumerate(json.loads(sys.argv[2])):
        model, truth = network(norm=True, dropout=0.1), clouds(83)[2]
        settings = dict(method=method, data=examples(83), model=model, epochs=6, batch_size=8, true_labels=truth, **own)
        whole = fit(**settings)
        fit(**settings, run_dir=folder / f"run{number}", stop_after=4)
        resumed = fit(**settings, run_dir=folder / f"run{number}", resume=True)
        for name, result in (("whole", whole), ("resumed", resumed)):
            context, chosen = result.recorder.context, result.recorder.method
            tensors = {}
            flatten(chosen.state(), "state", tensors)
            tensors |= {f"weights.{key}": value for key, value in
                        context.processes.bare(context.networks[0]).state_dict().items()}
            found = {key: value.numpy() for key, value in tensors.items()}
            np.savez(folder / f"{number}{name}{context.processes.rank}.npz", **found, **chosen.opinions())
        history.append([told(whole.history), told(resumed.history)])
    (folder / f"told{context.processes.rank}.json").write_text(json.dumps(history))
"""


@pytest.mark.slow
def test_two_processes_end_with_the_same_network_and_state_and_resume(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    outside = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    environment = {name: value for name, value in os.environ.items() if name not in outside}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment |= {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *start, str(script), str(tmp_path), json.dumps(OWN)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ends = [(name, rank) for name in ("whole", "resumed") for rank in (0, 1)]
    for number, (method, own) in enumerate(OWN):
        first, *others = [dict(np.load(tmp_path / f"{number}{name}{rank}.npz")) for name, rank in ends]
        for other in others:
            assert other.keys() == first.keys()
            for name, value in first.items():
                assert np.array_equal(other[name], value, equal_nan=True), (method, own, name)
    one, two = (json.loads((tmp_path / f"told{rank}.json").read_text()) for rank in (0, 1))
    assert one == two
    for number, (method, own) in enumerate(OWN):
        assert one[number][0] == one[number][1], (method, own)
    assert one[1][0][-1]["turned"] is not None  # d2l has gone back one epoch in both
    targets = dict(np.load(tmp_path / "0whole1.npz"))["state.targets"]
    assert targets.sum(axis=1) == pytest.approx(1 - 0.7**6, abs=1e-5)  # everyone was visited once an epoch
