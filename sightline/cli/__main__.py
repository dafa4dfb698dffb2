"""`python -m sightline.cli`: the command line without its script."""

from sightline.cli import main

main()
