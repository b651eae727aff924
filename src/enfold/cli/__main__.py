"""`python -m enfold.cli`, where the `enfold` script is not at hand."""

from enfold.cli import main

if __name__ == "__main__":  # processes that work for this one import it too
    main()
