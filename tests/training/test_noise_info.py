"""What a method must know of the noise: estimated first, given, or true."""

import pytest
from tests.training.common import clouds, fit, told, weights

from crust.errors import InputError
from crust.methods.erm import Erm
from crust.training import noise_estimation
from crust.training.method import Settings


class Knows(Erm):
    class Settings(Settings):
        noise_rate: noise_estimation.Rate = "estimate"
        noise_type: noise_estimation.NoiseType = "symmetric"


def test_the_noise_is_estimated_first_and_the_method_begins_as_if_it_were_not(register, tmp_path):
    name = register(Knows)
    whole = fit(name, epochs=4)
    stages = [line["stage"] for line in whole.history]
    assert stages == ["estimate 1"] * 4 + ["estimate 2"] * 4 + ["train"] * 4
    known = whole.history.lines[-1]["noise_info"]
    assert known["noise_rate"]["source"] == "estimated"
    assert 0 <= known["noise_rate"]["value"] < 1
    assert known["noise_type"] == {"value": "symmetric", "source": "given"}
    assert whole.config["noise_info"] == known
    assert whole.history.lines[0]["noise_info"] == {"noise_type": known["noise_type"]}
    assert whole.history.lines[8]["loss"] == pytest.approx(fit("erm", epochs=4).history["loss"][0], rel=0.2)
    for stop in (1, 4, 5, 8, 10):
        fit(name, epochs=4, run_dir=tmp_path, stop_after=stop, resume=stop > 1)
    parts = fit(name, epochs=4, run_dir=tmp_path, resume=True)
    assert told(parts.history) == told(whole.history)
    assert weights(parts) == weights(whole)
    assert "noise_info" in (tmp_path / "config.yaml").read_text()


def test_the_noise_is_given_or_true_where_one_says_so(register):
    name = register(Knows)
    given = fit(name, noise_rate=0.3)
    assert given.history.lines[0]["noise_info"]["noise_rate"] == {"value": 0.3, "source": "given"}
    assert len(given.history) == 3
    truth = clouds()[2]
    true = fit(name, noise_rate="true", noise_type="true", true_labels=truth)
    kept = true.data.kept
    real = float((clouds()[1][kept] != truth[kept]).mean())
    assert true.config["noise_info"]["noise_rate"] == {"value": pytest.approx(real), "source": "true"}
    assert true.config["noise_info"]["noise_type"] == {"value": "asymmetric", "source": "true"}
    with pytest.raises(InputError, match="noise_rate=true needs true labels"):
        fit(name, noise_rate="true")
    with pytest.raises(InputError, match="setting noise_rate"):
        fit(name, noise_rate=1.5)
