"""Language models: providers, limits, prices and calls."""
