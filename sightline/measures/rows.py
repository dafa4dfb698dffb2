"""What all measures take and give: rows of numbers, a mask that says which are real, one value per row."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Num

from sightline.attribution import Attribution
from sightline.errors import InputError

# The underscore: that lengths agree is checked here, for users too, and not by the tests' check of shapes.
Rows = Num[np.ndarray, "*_rows _position"] | Attribution
"""An array whose last axis is measured, or an Attribution, of which each target position is a row."""
Mask = Bool[np.ndarray, "*_rows _position"]
"""True where a position is real; it may lack leading axes, which it is then repeated along."""
PerRow = Float64[np.ndarray, "*_rows"] | np.float64
"""One value per row, or a number where there is but one row; NaN where the measure is undefined."""


class Summary(NamedTuple):
    """The mean and standard deviation over the rows where a measure is defined, and how many those are."""

    mean: float
    deviation: float
    defined: int
    undefined: int


def summarize(values: PerRow) -> Summary:
    """Average the defined values, and count those that are undefined (NaN) rather than hide them."""
    values = np.asarray(values)
    defined = values[~np.isnan(values)]
    mean, deviation = (float(defined.mean()), float(defined.std())) if defined.size else (np.nan, np.nan)
    return Summary(mean, deviation, defined.size, values.size - defined.size)


def to_rows(*several: Rows, mask: Mask | None = None) -> tuple[np.ndarray, ...]:
    """Bring values and their mask to one shape, in double precision; the mask comes last.

    Of an Attribution, the columns of the source are taken; those of the target prefix are not.
    """
    arrays = [
        np.asarray(one.without_prefix().scores if isinstance(one, Attribution) else one, dtype=np.float64)
        for one in several
    ]
    arrays.append(np.asarray(True if mask is None else mask))
    try:
        *values, real = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in (arrays[:-1] if mask is None else arrays))
        raise InputError(f"Rows of the shapes {shapes} cannot be compared: make them equal.") from None
    if any(np.isnan(array[real]).any() for array in values):
        raise InputError("There are NaNs among the values to measure: mask them, or mend what produced them.")
    return *values, real
