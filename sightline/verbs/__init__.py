"""What a user asks of a model: to explain, to align, to translate, to be calibrated. `sightline` gives them names."""
