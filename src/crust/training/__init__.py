"""Training: one loop, one contract for methods, checkpoints and history. Knows no method by name."""
