"""The version of Sightline, written here only: the package's metadata is built from it."""

__version__ = "0.2.0"
