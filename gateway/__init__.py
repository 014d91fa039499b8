"""era-gateway: a stateless MCP front door for servers of every era."""

__version__ = "0.1.0"
