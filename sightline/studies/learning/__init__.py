"""How attention learns (Snell et al. 2021)."""
