"""Networks by name: those of He et al. to the last parameter, seeds that touch nothing else, clear refusals."""

import pytest
import timm
import torch
from tests.refusals import refused
from torch import nn

from crust._util.torch_modules import check_outputs, last_linear
from crust.errors import InputError
from crust.models import MODELS, ResNet, build_model


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small networks gain nothing from a second thread, and lose much where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def derived(depth, channels=3, classes=10):
    """Counted from the description in section 4.2 of He et al.: 3x3 convolutions, two numbers a channel for
    BatchNorm, shortcuts without parameters, one linear layer."""
    n = (depth - 2) // 6
    layers = [(channels, 16)]
    for before, width in [(16, 16), (16, 32), (32, 64)]:
        layers += [(before, width)] + [(width, width)] * (2 * n - 1)
    assert len(layers) + 1 == depth
    return sum(9 * a * b + 2 * b for a, b in layers) + 64 * classes + classes


@pytest.mark.parametrize(
    ("depth", "count"),
    [(8, 75_290), (14, 172_506), (20, 269_722), (32, 464_154), (44, 658_586), (56, 853_018)],
)
def test_parameter_counts(depth, count):
    model = build_model(f"resnet{depth}", in_shape=(3, 32, 32), classes=10)
    assert parameters(model) == count == derived(depth)
    weighted = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    assert len(weighted) == depth


def test_the_published_counts():
    """Table 6 of He et al., in millions."""
    published = {20: 0.27, 32: 0.46, 44: 0.66, 56: 0.85}
    assert {depth: round(derived(depth) / 1e6, 2) for depth in published} == published


def slow_resnet(model, x):
    """The network as the paper describes it, one step after another."""

    def norm(bn, z):
        return torch.batch_norm(z, bn.weight, bn.bias, None, None, True, 0.0, bn.eps, False)

    x = torch.relu(norm(model.norm, torch.conv2d(x, model.conv.weight, padding=1)))
    for block in model.blocks:
        stride = 2 if block.conv1.in_channels != block.conv1.out_channels else 1
        y = torch.relu(norm(block.norm1, torch.conv2d(x, block.conv1.weight, stride=stride, padding=1)))
        y = norm(block.norm2, torch.conv2d(y, block.conv2.weight, padding=1))
        if stride == 2:
            zeros = torch.zeros_like(y[:, : y.shape[1] // 4])
            x = torch.cat([zeros, x[:, :, ::2, ::2], zeros], 1)
        x = torch.relu(x + y)
    return x.flatten(2).mean(2) @ model.linear.weight.T + model.linear.bias


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (4, 9, 15)])
def test_the_forward_pass_is_that_of_the_paper(shape):
    model = build_model("resnet14", in_shape=shape, classes=5).double()
    x = torch.randn(6, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(model(x), slow_resnet(model, x))


def test_sizes_of_the_stages():
    model = build_model("resnet20", in_shape=(3, 32, 32), classes=10).eval()
    shapes = []
    for block in model.blocks:
        block.register_forward_hook(lambda _module, _args, out: shapes.append(tuple(out.shape[1:])))
    model(torch.zeros(1, 3, 32, 32))
    assert shapes == [(16, 32, 32)] * 3 + [(32, 16, 16)] * 3 + [(64, 8, 8)] * 3


def test_initial_weights_have_the_variance_of_he():
    model = build_model("resnet32", in_shape=(3, 32, 32), classes=10, seed=3)
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.weight.numel() > 9000:
            fan_in = module.weight[0].numel()
            assert module.weight.var().item() * fan_in / 2 == pytest.approx(1, abs=0.05)
    assert not model.linear.bias.any()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "text"])
@pytest.mark.parametrize("shape", [(1, 8, 8), (5, 11, 20)])
def test_every_model_takes_every_image(name, shape):
    model = build_model(name, in_shape=shape, classes=7)
    x = torch.randn(3, *shape)
    check_outputs(model, x, 7)
    assert model.training
    model(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters() if p.ndim > 1)
    assert last_linear(model, x)[1].out_features == 7


@pytest.mark.parametrize("name", ["resnet8", "small_cnn"])
def test_channels_last_stays_so_and_changes_nothing(name):
    model = build_model(name, in_shape=(3, 32, 32), classes=10).eval()
    x = torch.randn(4, 3, 32, 32)
    expected = model(x)
    model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    turned = []
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.MaxPool2d)) or type(module).__name__ == "_Block":
            module.register_forward_hook(
                lambda _module, _args, out: turned.append(out.is_contiguous(memory_format=torch.channels_last))
            )
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)
    assert turned
    assert all(turned)


@pytest.mark.parametrize("name", ["resnet8", "small_cnn", "mlp", "timm:test_resnet"])
def test_weights_depend_on_the_seed_alone(name):
    def build(seed):
        return torch.cat(
            [p.flatten() for p in build_model(name, in_shape=(3, 16, 16), classes=4, seed=seed).parameters()]
        )

    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = build(1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert torch.equal(build(1), first)
    assert not torch.equal(build(2), first)


def test_settings():
    assert [
        m.out_features
        for m in build_model("mlp", in_shape=(4,), classes=3, hidden=[9, 5])
        if hasattr(m, "out_features")
    ] == [9, 5, 3]
    assert parameters(build_model("mlp", in_shape=(4,), classes=3, hidden=())) == 15
    assert parameters(build_model("mlp", in_shape=(4,), classes=3, hidden=2)) == 19
    assert sum(isinstance(m, nn.Dropout) for m in build_model("mlp", in_shape=(4,), classes=1, dropout=0.2)) == 2
    assert build_model("small_cnn", in_shape=(1, 8, 8), classes=2, width=4, dropout=0.5)[-1].in_features == 16


@pytest.mark.parametrize(
    ("name", "shape", "settings", "sentence"),
    [
        (
            "resnet33",
            (3, 32, 32),
            {},
            "unknown model 'resnet33': use one of resnet8, .*, timm:NAME, hf:NAME; did you mean 'resnet32'",
        ),
        ("timm:", (3, 32, 32), {}, "unknown model 'timm:'"),
        (None, (3, 32, 32), {}, "unknown model None"),
        ("timm:NAME", (3, 32, 32), {}, "timm has no model 'NAME'"),
        ("timm:resnet19", (3, 32, 32), {}, "timm has no model 'resnet19': did you mean .*resnet18"),
        ("timm:resnet18.a1", (3, 32, 32), {}, "unknown weights of resnet18 'a1': use one of a1_in1k"),
        ("timm:resnet18", (64,), {}, r"timm:resnet18 needs images .* shape \(64,\): use the model mlp"),
        ("timm:test_resnet", (3, 32, 32), {"depth": 3}, "timm:test_resnet could not be built .*'depth'"),
        ("resnet8", (64,), {}, r"resnet8 needs images of shape \(channels, height, width\)"),
        ("resnet8", (1, 7, 9), {}, "resnet8 needs images of at least 8x8, but they are 7x9: use mlp"),
        ("resnet8", (3, 32, 32), {"width": 3}, "resnet8 has no settings, but 'width' is given: leave it out"),
        (
            "mlp",
            (4,),
            {"hiden": 3},
            "unknown setting of mlp 'hiden': use one of hidden, dropout; did you mean 'hidden'",
        ),
        ("mlp", (4,), {"hidden": [0]}, "hidden has the value 0: give a whole number of at least 1"),
        ("mlp", (4,), {"hidden": "128"}, "hidden has the value '128': give a whole number"),
        ("mlp", (4,), {"dropout": 1.0}, "dropout has the value 1.0: give a share"),
        ("small_cnn", (1, 8, 8), {"width": 2.5}, "width has the value 2.5"),
    ],
)
def test_wrong_names_and_settings_are_refused(name, shape, settings, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        build_model(name, in_shape=shape, classes=10, **settings)
    assert "\n" not in str(caught.value)


def test_wrong_counts_are_refused():
    with refused("count-range"):
        build_model("mlp", in_shape=(4,), classes=0)
    with refused("count-range"):
        build_model("mlp", in_shape=(-1,), classes=2)
    with refused("seed-range"):
        build_model("mlp", in_shape=(4,), classes=2, seed="a")
    with refused("depth-range"):
        ResNet((3, 32, 32), 10, depth=10)


@pytest.mark.parametrize("name", ["timm:test_resnet", "timm:test_vit"])
@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 160, 160)])
def test_timm_models(name, shape):
    """The transformer has a table of positions: it is built for the size of the images."""
    model = build_model(name, in_shape=shape, classes=6)
    check_outputs(model, torch.zeros(2, *shape), 6)
    assert last_linear(model, torch.randn(2, *shape))[1].out_features == 6


def test_pretrained_weights_only_where_they_are_asked_for(monkeypatch):
    asked = []

    def create_model(name, pretrained, **settings):
        asked.append((name, pretrained, settings))
        if pretrained:
            raise OSError("no connection.\nat all")
        return nn.Linear(1, 1)

    monkeypatch.setattr(timm, "create_model", create_model)
    build_model("timm:resnet18.a1_in1k", in_shape=(1, 32, 32), classes=3, drop_rate=0.1)
    assert asked == [("resnet18.a1_in1k", False, {"num_classes": 3, "in_chans": 1, "drop_rate": 0.1})]
    sentence = r"timm:resnet18 could not be loaded with its weights \(no connection\): .*pretrained=False"
    with pytest.raises(InputError, match=sentence):
        build_model("timm:resnet18", in_shape=(1, 32, 32), classes=3, pretrained=True)


def test_padding_and_left_out_tokens_change_no_answer():
    model = build_model("text", in_shape=(50,), classes=3, token_dropout=0.9).eval()
    ids = torch.tensor([[4, 9, 0, 0], [0, 0, 0, 0]])
    assert torch.allclose(model(ids)[:1], model(ids[:1, :2]), atol=1e-6)
    assert torch.isfinite(model(ids)).all()
    assert not model.train()(ids.repeat(9, 1)).equal(model.eval()(ids.repeat(9, 1)))
    for wrong in ({"dim": 0}, {"hidden": -1}, {"token_dropout": 1}):
        with pytest.raises(InputError):
            build_model("text", in_shape=(50,), classes=3, **wrong)
