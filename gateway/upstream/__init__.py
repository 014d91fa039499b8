"""The shells towards servers: connections, sessions, streams, and the driving of what the core decides.

One upstream is built in `build`; `any_era` chooses between `legacy` and `modern`; `merged` makes one of several. May
import `core` and below, httptools and yarl (data plane) and httpx (control plane); not the other shells: it declares
what it consumes of them.
"""
