"""The paper's theory as a diagnosis: does it hold for this network and this data?"""

from crust.theory.alignment import Aligned, Alignment, Share, alignment
from crust.theory.coreset_quality import Bound, CoresetQuality, Errors, coreset_quality
from crust.theory.guarantee import Guarantee, Outcome, Premise, guarantee
from crust.theory.spectrum import Spectrum, spectrum

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
