"""Decisions and state, without I/O: what to do, never the doing of it.

The validation ladder, the era verdict, the facts of a legacy session, the life of one exchange, the sealed request
state. The clock, ids and keys are passed in. May import `translate`, `errors` and `wire`; no event loop, no sockets.
"""
