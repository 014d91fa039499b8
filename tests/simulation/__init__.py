"""The simulation: `make simulate`, or `python -m tests.simulation`.

A fleet of replicas with suspended rounds, second by second: where rounds are placed, what retries cost at the store,
and what happens when replicas go. What each thing costs is measured by the benchmark (`costs`); how users behave is
assumed (`workload`). Nothing of the gateway is imported.
"""
