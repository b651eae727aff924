"""Tests of the chat controller; no screen is needed."""
