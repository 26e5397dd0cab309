"""Data from files: one file a format."""
