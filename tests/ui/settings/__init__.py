"""Tests of the settings, each done as a person would do it."""
