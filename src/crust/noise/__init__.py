"""Label noise: transition matrices by name, labels drawn from them, and what was drawn kept in a file.

`transition_matrix` builds T, the matrix whose entry (i, j) is the chance that an example of class i is labelled j;
`noisify` draws labels from it. `make_noisy_labels` does both from one line such as `symmetric:0.5` and one seed.
"""

from crust.noise.sample import instance_noise, noisify, released_labels
from crust.noise.spec import NoiseSpec, NoisyLabels, make_noisy_labels, parse_noise
from crust.noise.transition_matrices import transition_matrix

__all__ = [
    "NoiseSpec", "NoisyLabels", "instance_noise", "make_noisy_labels", "noisify", "parse_noise", "released_labels",
    "transition_matrix",
]  # fmt: skip
