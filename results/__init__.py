"""The pages of this repository that are made from result lines. Not part of the package."""
