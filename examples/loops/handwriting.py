"""The data of the examples beside: handwritten digits, 30% of the training labels wrong, and a small network."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn

EPOCHS = 12

images, truth = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32) / 16
rng = np.random.default_rng(0)
given = np.where(rng.random(1297) < 0.3, rng.integers(0, 10, 1297), truth[:1297])

train_set = torch.utils.data.TensorDataset(images[:1297], torch.tensor(given))
test_x, test_y = images[1297:], torch.tensor(truth[1297:])


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


def report(model, table):
    """Accuracy on clean labels, and how well the audit ranks the wrong labels: the area under its ROC curve."""
    model.eval()
    with torch.no_grad():
        accuracy = float((model(test_x).argmax(1) == test_y).float().mean())
    wrong = given != truth[:1297]
    auroc = roc_auc_score(wrong[table["index"]], -table["label_quality"])
    print(f"test accuracy {accuracy:.3f}; the audit ranks wrong labels with an AUROC of {auroc:.3f}")
    return accuracy, auroc
