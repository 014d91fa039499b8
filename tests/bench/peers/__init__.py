"""The same load on other gateways: `make bench-peers`, or `python -m tests.bench.peers`.

Each peer is pinned here, and installed by `scripts/bench-peers` in an environment of its own. They speak the legacy
protocol with their clients, so the load opens one session and calls in it; ours is called as modern clients call it.
"""
