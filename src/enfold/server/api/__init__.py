"""The JSON API: a router for each kind of resource."""

from enfold.server.api.app import create_api

__all__ = ["create_api"]
