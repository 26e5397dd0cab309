"""The paper's theory as a diagnosis: does it hold for this network and this data?"""

from crust.theory.alignments import Aligned, Alignment, Share, alignment
from crust.theory.promise import Guarantee, Outcome, Premise
from crust.theory.quality import Bound, CoresetQuality, Errors, coreset_quality
from crust.theory.spectra import Spectrum, spectrum
from crust.theory.theorem import guarantee

__all__ = [
    "Aligned",
    "Alignment",
    "Bound",
    "CoresetQuality",
    "Errors",
    "Guarantee",
    "Outcome",
    "Premise",
    "Share",
    "Spectrum",
    "alignment",
    "coreset_quality",
    "guarantee",
    "spectrum",
]
