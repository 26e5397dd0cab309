"""Plain training: cross-entropy on everything, as if all labels were right."""

from crust.training.method import Method


class Erm(Method):
    name = "erm"
    summary = "plain cross-entropy on all examples"
