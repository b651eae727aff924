"""Tests of the web UI, done in a browser as a person would."""
