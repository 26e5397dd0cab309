"""crust inside other libraries: one file a library."""
