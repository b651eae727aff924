"""`python -m enfold.cli`, where the `enfold` script is not at hand."""

from enfold.cli import main

main()
