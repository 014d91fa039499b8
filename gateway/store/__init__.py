"""The store that replicas share, Redis or Valkey: the connection to it, and nothing about what it is used for.

The only room that knows the `redis` package. Every key begins with one namespace, and every command touches one key, so
that a cluster serves as well. What is written is sealed by who writes it. May import `core` and below.
"""
