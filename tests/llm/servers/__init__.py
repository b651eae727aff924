"""Small servers on this machine that speak, or misspeak, each provider's protocol."""
