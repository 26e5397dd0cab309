"""The paper's theory as a diagnosis: does it hold for this network and this data?"""

from crust.theory.spectra import Spectrum, spectrum

__all__ = ["Spectrum", "spectrum"]
