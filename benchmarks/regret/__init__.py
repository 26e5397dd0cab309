"""The scoreboard: what a method costs somebody who chose it, over many conditions (docs/results/regret.md)."""
