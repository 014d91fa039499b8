"""The benchmark: `make bench`, or `python -m tests.bench`.

A canned upstream (`upstream`), a load generator (`load`) and a bare reference proxy (`bare`), each a process
of its own, and the run that puts them around the gateway (`__main__`). The gateway itself is never imported
here: it is measured from outside, as a user starts it.
"""
