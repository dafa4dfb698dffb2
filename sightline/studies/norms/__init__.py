"""The study of vector norms (Kobayashi et al. 2020)."""
