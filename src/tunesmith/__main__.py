"""`python -m tunesmith` is the command line."""

from tunesmith.cli.main import main

if __name__ == "__main__":
    main()
