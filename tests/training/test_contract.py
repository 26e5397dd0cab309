"""What the loop promises to methods: stages, skipped steps, tensors of their own."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.training.common import fit, network, told, weights

from crust._util.torch_modules import forward_logits
from crust.methods.erm import Erm
from crust.training.losses import cross_entropy
from crust.training.method import Selection, Stage

ROOT = Path(__file__).parents[2]


def trained(result, number=0):
    return result.recorder.context.processes.bare(result.recorder.context.networks[number]).state_dict()


def same(a, b) -> bool:
    return all(value.equal(b[name]) for name, value in a.items())


# ------------------------------------------------------------ stages


class Growing(Erm):
    """As many stages as the last one says, on a subset that the one before chose."""

    def __init__(self, settings):
        super().__init__(settings)
        self.subsets = [np.arange(40)]

    def next_stage(self, done):
        if done >= 3:
            return None
        return Stage(f"fit {done}", 2, start="initial", subset=self.subsets[done], counts=done == 2, end="best")

    def end_stage(self, context):
        seen = context.predict(np.arange(50))
        self.subsets.append(np.flatnonzero(seen.predictions == context.labels[:50]))

    def state(self):
        return {"subsets": list(self.subsets)}

    def load_state(self, state):
        self.subsets = list(state["subsets"])


def test_stages_that_depend_on_results_are_resumed_at_any_epoch(register, tmp_path):
    name = register(Growing)
    whole = fit(name)
    assert whole.history["stage"] == ["fit 0"] * 2 + ["fit 1"] * 2 + ["fit 2"] * 2
    assert whole.history["n_selected"][0] == 40
    assert len(set(whole.history["n_selected"])) > 1
    for stop in range(1, 6):
        fit(name, run_dir=tmp_path, stop_after=stop, resume=stop > 1)
    parts = fit(name, run_dir=tmp_path, resume=True)
    assert told(parts.history) == told(whole.history)
    assert weights(parts) == weights(whole)


def test_a_stage_has_settings_of_its_own(register):
    class Own(Erm):
        def stages(self):
            return [
                Stage("a", 1, learning_rate=0.5, schedule=False, batch_size=27, optimizer="adam", weight_decay=0.0),
                Stage("b", 4, factors=((0.25, 0.5), (0.5, 0.1)), batch_size=30, full_batches=True, momentum=0.0),
            ]

        def losses(self, outputs, batch, context):
            sizes.append(len(batch.y))
            return super().losses(outputs, batch, context)

    sizes: list[int] = []
    result = fit(register(Own), learning_rate=0.1)
    assert sizes == [27] * 3 + [30] * 8  # of 81 examples
    assert result.history["learning_rate"] == pytest.approx([0.5, 0.1, 0.05, 0.01, 0.01])
    optimizer = result.recorder.state.optimizers[0]
    assert optimizer.param_groups[0]["momentum"] == 0.0
    assert result.recorder.context.experiment.batch_size == 16


@pytest.mark.parametrize("start", ["scratch", "initial", "keep", "best"])
def test_where_a_stage_starts(register, start):
    class Twice(Erm):
        def stages(self):
            return [Stage("a", 3), Stage("b", 1, start=start)]

        def begin_stage(self, context):
            state = context.processes.bare(context.networks[0]).state_dict()
            seen.append({name: value.clone() for name, value in state.items()})

    seen: list = []
    result = fit(register(Twice))
    first = fit("erm", epochs=3)
    assert same(seen[0], network().state_dict())
    assert same(seen[1], seen[0]) == (start == "initial")
    assert same(seen[1], first.recorder.state.best) == (start == "best")
    assert same(seen[1], trained(first)) == (start == "keep" or (start == "best" and same(trained(first), seen[1])))
    assert len(result.history) == 4


@pytest.mark.parametrize("by", ["val_accuracy", "val_loss", "method", "last"])
def test_what_is_kept(register, by):
    class Kept(Erm):
        def stages(self):
            return [Stage(select_by=by)]

        def score(self, probabilities, labels):
            return -float(probabilities[:, 0].mean())

    result = fit(register(Kept), epochs=6)
    key, sign = {"val_accuracy": ("val_accuracy", 1), "val_loss": ("val_loss", -1), "method": ("score", 1)}.get(
        by, ("epoch", 1)
    )
    scores = [sign * value for value in result.history[key]]
    assert result.recorder.state.best_epoch == 1 + max(range(6), key=lambda i: (scores[i], i))


def test_training_examples_can_choose_what_is_kept(register):
    class Held(Erm):
        def stages(self):
            return [Stage(held=np.arange(60, 81), subset=np.arange(60))]

    result = fit(register(Held), epochs=4, validation=0.1)
    assert result.recorder.state.best_score == max(result.history["held_accuracy"])
    plain = fit("erm", epochs=4)
    assert result.history.lines[-1]["passes"]["forward"] == 4 * 60 + 4 * 21 + looks(plain)


def looks(plain) -> int:
    """Forward passes of a run of `erm` that were made for the audit."""
    passes = plain.history.lines[-1]["passes"]
    return passes["forward"] - passes["backward"]


def test_an_empty_selection_is_an_epoch_without_a_step(register):
    class Nobody(Erm):
        def begin_epoch(self, context):
            return Selection(np.empty(0, np.int64)) if context.epoch else None

    result = fit(register(Nobody))
    assert result.history["n_selected"] == [81, 0, 0]
    assert same(trained(result), trained(fit("erm", stop_after=1)))


# ------------------------------------------------------------ steps


class Skips(Erm):
    """No loss from the second epoch on."""

    def losses(self, outputs, batch, context):
        return super().losses(outputs, batch, context) if context.epoch == 0 else [None]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_skipped_step_changes_no_bit(register, optimizer):
    result = fit(register(Skips), optimizer=optimizer, weight_decay=0.1)
    assert result.history["skipped"] == [None, 5, 5]
    assert same(trained(result), trained(fit("erm", optimizer=optimizer, weight_decay=0.1, stop_after=1)))


class Slack(Erm):
    """A tensor of its own that is added to the logits; it learns the frequencies of the labels."""

    def __init__(self, settings):
        super().__init__(settings)
        self.slack = torch.zeros(3, requires_grad=True)

    def stages(self):
        return [Stage(extra_learning_rate=0.5)]

    def extra_parameters(self):
        return [self.slack]

    def losses(self, outputs, batch, context):
        return [cross_entropy(outputs[0].logits + self.slack, batch.y)]


def test_tensors_of_a_method_are_trained_without_decay_and_saved(register, tmp_path):
    name = register(Slack)
    whole = fit(name, epochs=4, weight_decay=0.1)
    groups = whole.recorder.state.optimizers[0].param_groups
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    assert groups[1]["lr"] == 0.5
    assert float(whole.recorder.method.slack.detach().abs().sum()) > 0
    fit(name, epochs=4, weight_decay=0.1, run_dir=tmp_path, stop_after=2)
    parts = fit(name, epochs=4, weight_decay=0.1, run_dir=tmp_path, resume=True)
    assert parts.recorder.method.slack.equal(whole.recorder.method.slack)
    assert weights(parts) == weights(whole)


def test_features_are_what_the_last_layer_is_given_and_the_layer_is_looked_for_once(register, monkeypatch):
    from crust.training import evaluation

    class Features(Erm):
        wants_features = True

        def losses(self, outputs, batch, context):
            last = context.processes.bare(context.networks[0])[-1]
            assert torch.allclose(last(outputs[0].features), outputs[0].logits, atol=1e-6)
            asked.append(1)
            return super().losses(outputs, batch, context)

    asked, found = [], []
    search = evaluation.last_linear
    monkeypatch.setattr(evaluation, "last_linear", lambda *args: found.append(1) or search(*args))
    result = fit(register(Features), model=network(norm=True, dropout=0.2))
    assert len(asked) == 15
    assert len(found) == 1
    assert same(trained(result), trained(fit("erm", model=network(norm=True, dropout=0.2))))


def test_inputs_for_each_network_and_networks_that_rest(register):
    class Two(Erm):
        networks = 2

        def stages(self):
            return [Stage("one", 1, networks=1), Stage("two", 2)]

        def prepare(self, batch, context):
            if context.active == 2:
                batch.inputs = [batch.x[:4], None]
            return batch

        def losses(self, outputs, batch, context):
            sizes.append([len(output.logits) for output in outputs])
            if context.active == 1:
                return super().losses(outputs, batch, context)
            return [cross_entropy(outputs[0].logits, batch.y[:4]), None]

    sizes: list = []
    result = fit(register(Two))
    assert sizes[:6] == [[16]] * 4 + [[17]] + sizes[5:6]
    assert all(pair == [4, 0] for pair in sizes[-5:])
    second = result.recorder.context.networks[1].state_dict()
    assert not same(second, network().state_dict())  # seeded apart
    first_two = [line["passes"]["backward"] for line in result.history][:2]
    steps = len(sizes) - sizes.index([4, 0])
    assert first_two[1] - first_two[0] == 4 * steps // 2
    # which of its own batches are right the loop does not know
    assert ["batch_accuracy" in line for line in result.history] == [True, False, False]


# ------------------------------------------------------------ looking


def test_predictions_are_those_of_the_network_and_leave_it_alone(register):
    class Looks(Erm):
        def end_epoch(self, context):
            net = context.processes.bare(context.networks[0])
            before = {name: value.clone() for name, value in net.state_dict().items()}
            index = np.array([5, 3, 60])
            seen = context.predict(index, features=True)
            x = context.plain.inputs[index]
            once = context.evaluate_batch(x, features=True)
            training = net.training
            net.eval()
            with torch.no_grad():
                logits = forward_logits(net, x)
            net.train(training)
            assert np.allclose(seen.probabilities, logits.softmax(1).numpy(), atol=1e-6)
            assert np.array_equal(seen.predictions, logits.argmax(1).numpy())
            expected = torch.nn.functional.cross_entropy(
                logits, torch.from_numpy(context.labels[index]), reduction="none"
            )
            assert np.allclose(seen.losses, expected.numpy(), atol=1e-6)
            assert torch.allclose(once.logits, logits, atol=1e-6)
            assert not once.logits.requires_grad
            assert np.allclose(seen.features, once.features.numpy(), atol=1e-6)
            assert same(net.state_dict(), before)
            assert training

    model = network(norm=True, dropout=0.3)
    result, plain = fit(register(Looks), model=model), fit("erm", model=model)
    assert same(trained(result), trained(plain))
    more = [line["passes"]["forward"] for line in result.history]
    less = [line["passes"]["forward"] for line in plain.history]
    assert [a - b for a, b in zip(more, less, strict=True)] == [3, 9, 15] or more[-1] - less[-1] == 18


# ------------------------------------------------------------ two processes

SCRIPT = """
    import json, sys
    from pathlib import Path
    import torch
    from crust.methods import METHODS
    from crust.training.distributed import Processes
    from tests.training.common import examples, fit, network
    from tests.training.test_contract import Skips, Slack

    class Half(Skips):
        \"\"\"Only the first process has losses after the first epoch.\"\"\"
        def losses(self, outputs, batch, context):
            if context.epoch and context.processes.rank:
                return [None]
            return super(Skips, self).losses(outputs, batch, context)

    told = {}
    for kind in (Skips, Slack, Half):
        kind.name = kind.__name__.lower()
        METHODS[kind.name] = kind
        seen = []
        result = fit(kind.name, data=examples(90), model=network(norm=True), weight_decay=0.1, batch_size=9,
                     on_epoch_end=lambda line: seen.append(line))
        context = result.recorder.context
        state = context.processes.bare(context.networks[0]).state_dict()
        told[kind.name] = {"sums": [float(value.double().sum()) for value in state.values()],
                           "history": [{k: v for k, v in line.items() if k != "seconds"} for line in result.history],
                           "slack": result.recorder.method.slack.tolist() if kind is Slack else None}
    stopped = fit("skips", data=examples(90), model=network(norm=True), weight_decay=0.1, batch_size=9, stop_after=1)
    parameters = dict(stopped.recorder.context.networks[0].module.named_parameters())
    after = dict(fit("skips", data=examples(90), model=network(norm=True), weight_decay=0.1, batch_size=9)
                 .recorder.context.networks[0].module.named_parameters())
    told["unchanged"] = all(value.equal(after[name]) for name, value in parameters.items())
    rank = Processes(cpu=True).rank
    (Path(sys.argv[1]) / f"{rank}.json").write_text(json.dumps(told))
"""


@pytest.mark.slow
def test_two_processes_skip_together_and_share_the_gradients_of_a_methods_tensors(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    outside = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    environment = {name: value for name, value in os.environ.items() if name not in outside}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment |= {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*start, str(script), str(tmp_path)], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    one, two = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert one == two
    assert one["unchanged"]
    assert np.abs(one["slack"]["slack"]).sum() > 0
    assert [line.get("skipped") for line in one["skips"]["history"]] == [None, 9, 9]
    assert [line.get("skipped") for line in one["half"]["history"]] == [None, 4, 4]
    assert one["half"]["sums"] != one["skips"]["sums"]
