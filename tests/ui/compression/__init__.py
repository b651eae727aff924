"""Tests of compressions on a page."""
