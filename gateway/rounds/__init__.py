"""Suspended exchanges between the rounds: who may have how many, for how long, and who may claim one.

A directory keeps whatever can `expire`; it knows nothing of upstreams or of HTTP. May import `core` and below.
"""
