"""What a message of one era becomes in the other: pure functions from dict to dict.

Nothing here mutates its input, keeps state or decides what happens next; a translator touches the keys it names and
passes all else on. Copies are shallow and made only of what changes, since results can be large and calls many.
May import `gateway.wire`; no I/O, no clock, no randomness.
"""
