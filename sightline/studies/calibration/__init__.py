"""Attention calibration for Transformer in neural machine translation (Lu et al. 2021)."""
