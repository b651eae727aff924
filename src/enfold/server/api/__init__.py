"""The JSON API: one router for each noun, and one shape for every error."""

from enfold.server.api.app import create_api

__all__ = ["create_api"]
