"""What the operator wrote, checked and typed.

`load` and `environment` lead to `model.Settings`, or to a `problems.ConfigError` that names everything wrong at once.
May import pydantic, yaml, cryptography-free standard library, `errors` and `wire`; imported by `cli` and `app` only.
"""
