"""The proxy: keeps the requests of any client inside the model's window."""
