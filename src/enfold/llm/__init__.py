"""Language models: what they take, what they cost, and the calls to them."""
