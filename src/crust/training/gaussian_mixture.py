"""A mixture of two Gaussians on losses: which examples have losses as those of right labels."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

SMALLEST = 5e-4  # variance, of losses between 0 and 1


def clean_probability(losses: NDArray[np.floating], steps: int = 10, enough: float = 1e-2) -> NDArray[np.float64]:
    """The posterior probability of the component with the small mean, of two fitted by expectation maximisation.

    Losses are brought between 0 and 1 first. Beyond the two means the posterior stays what it is there: components of
    different widths would else call the largest losses of all clean, or the smallest wrong.

    Args:
        losses: one an example.
        steps: of expectation maximisation, at most: run to the end, it would split the easy examples in two.
        enough: stop when a step adds less than this to the mean log-likelihood.

    Returns:
        One probability an example, never larger where the loss is larger; all 1 where all losses are alike.

    References:
        Arazo et al.: Unsupervised Label Noise Modeling and Loss Correction, ICML 2019; Li, Socher, Hoi: DivideMix,
        ICLR 2020, section 3.1.
    """
    x = np.asarray(losses, np.float64)
    low, high = (x.min(), x.max()) if len(x) else (0.0, 0.0)
    if not high > low:
        return np.ones(len(x))
    x = ((x - low) / (high - low))[:, None]
    mixture = GaussianMixture(2, max_iter=steps, tol=enough, reg_covar=SMALLEST, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is meant, and so are few distinct losses
        mixture.fit(x)
    clean, wrong = mixture.means_[:, 0].argsort()
    between = np.clip(x, mixture.means_[clean], mixture.means_[wrong])
    found: NDArray[np.float64] = mixture.predict_proba(between)[:, clean]
    return found
