"""Inside an attention layer: projections, watching and changing, calibration, the alignment adapter."""
