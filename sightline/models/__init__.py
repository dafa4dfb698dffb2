"""Models: loading any of Hugging Face's as one that methods can ask, and architectures of our own."""
