"""Tests of talks, which no screen is needed for."""
