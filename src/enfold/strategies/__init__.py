"""Strategies: how a view is condensed."""
