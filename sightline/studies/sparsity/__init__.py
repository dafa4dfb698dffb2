"""Is sparse attention more interpretable? (Meister et al. 2021)."""
