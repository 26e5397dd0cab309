"""Everything that knows the folder of a run: its files, its result, its data and checkpoints opened again."""
