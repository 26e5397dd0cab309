"""The paper's theory as a diagnosis: does it hold for this network and this data?"""

from crust.theory.alignment import Alignment, alignment
from crust.theory.coreset_quality import CoresetQuality, coreset_quality
from crust.theory.guarantee import Guarantee, guarantee
from crust.theory.spectrum import Spectrum, spectrum

__all__ = [
    "Alignment", "CoresetQuality", "Guarantee", "Spectrum", "alignment", "coreset_quality", "guarantee", "spectrum",
]  # fmt: skip
