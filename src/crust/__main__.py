"""`python -m crust` is the command `crust`."""

from crust.cli import main

if __name__ == "__main__":
    main()
