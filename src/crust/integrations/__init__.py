"""Thin adapters that put `CoresetSampler` where training frameworks ask for a sampler; each needs its extra."""
