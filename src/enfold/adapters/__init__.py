"""Adapters: how enfold fits into frameworks that have their own words, one module each."""
