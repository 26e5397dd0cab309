"""The words on the measured theory say what the numbers say."""

from results.theory_page import reading


def run(method="crust", noise=0.3, lies=0.6, gram=0.1, gradient=0.5, wrong=0.2):
    """A summary whose random subsets have shares of 0.2 and 0.22, errors of 0.1 and 0.12."""
    sets = {
        "all": {"chance": 0.1},
        "right": {"labels": {"information": 0.5}},
        "wrong": {"labels": {"information": wrong}},
        "coreset": {"labels": {"information": lies}},
    }
    quality = {
        "noise": noise,
        "noise_of_all": 0.5,
        "members": 100,
        "errors": {"gram": gram, "gradient": gradient},
        "random": [{"gram": value, "gradient": value} for value in (0.1, 0.12)],
    }
    moment = {
        "epoch": 40,
        "sets": sets,
        "random_sets": [{"labels": {"information": value}} for value in (0.2, 0.22)],
        "quality": quality,
    }
    premises = [{"holds": True}, {"holds": False}]
    return {
        "method": method, "model": "mlp", "points": 200, "moments": [moment], "guarantee": {"premises": premises}
    }  # fmt: skip


def test_a_choice_that_leaves_out_wrong_labels():
    model, one = reading([run()])
    assert model == (
        "**mlp**: the information space has 10% of the dimensions, and in it lie 50% of the right labels' vector and "
        "20% of the wrong ones': 30 points between them."
    )
    assert one == (
        "**crust, mlp**, epoch 40: 30% of the chosen labels are wrong, of all 50%; 60% of their vector lies in the "
        "information space, more than of random subsets (21%): it leaves out wrong labels, and those are the ones that "
        "the network's leading directions cannot fit. It is as near to JᵀJ of all as a random subset is, and is "
        "farther from the gradient of all than a random subset is: what it gains comes from the labels it leaves out, "
        "not from standing for all the data. It keeps 1 of the theorem's 2 premises."
    )


def test_one_that_prefers_them_and_one_by_chance():
    _, worse, chance = reading([run("crust-paper", 0.65, 0.1, 0.01, 0.11), run("random", 0.53, 0.21, 0.11, 0.11, 0.4)])
    assert "less than of random subsets (21%): it prefers wrong labels" in worse
    assert "It is nearer to JᵀJ of all than a random subset is, and is as near to the gradient" in worse
    assert "it stands for all the data, and for the wrong labels in it" in worse
    assert "as much as of random subsets (21%): its labels are no better than chance has them." in chance
    assert reading([run(), run(wrong=0.4)])[0].endswith(
        "50% of the right labels' vector and 20 to 40% of the wrong ones': 10 to 30 points between them."
    )


def test_a_run_that_chooses_nothing():
    none = run()
    none["moments"][0]["quality"] = None
    assert reading([none])[1] == "**crust, mlp**, epoch 40: nothing is chosen."
