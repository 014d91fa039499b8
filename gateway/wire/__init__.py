"""The vocabulary of the protocol: facts, no decisions.

Versions, method names, `_meta` keys, headers, error codes, JSON-RPC envelopes and SSE framing. May import only the
standard library's pure parts and orjson; nothing of the gateway, no I/O.
"""
