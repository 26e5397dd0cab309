"""Corrected labels, in the form that the data came in: a table, an archive of arrays, moved images, a labels file."""
