"""The front door: ASGI in, ASGI out.

Reads a request, has the core judge it, hands it to an upstream, and writes the reply as JSON or as a stream. The hot
path is raw ASGI; Starlette serves the rest. May import `core` and below, and Starlette; not the other shells.
"""
