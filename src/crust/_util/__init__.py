"""Private helpers: files, seeds, progress, torch modules, Ray. Nothing in here is part of the public API."""
