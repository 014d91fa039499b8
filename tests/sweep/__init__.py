"""Published stdio servers behind one gateway: what a modern client sees of each is what the server says itself.

`sh scripts/sweep` makes their environments under `.envs/sweep` and runs `python -m tests.sweep`; it is no part of the
test suite. docs/testing.md says what it covers. May use `tests.support`; the expected answers are made by `rules`, from
the documentation, and by no code of the gateway.
"""
