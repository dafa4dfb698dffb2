"""`python -m sightline`: the command, where it is not on the path."""

from sightline.cli import main

main()
