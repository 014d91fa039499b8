"""What the operator wrote, checked and typed.

`load.load` and `environment.from_environment` lead to `model.Settings`, or to a `problems.ConfigError` that names
everything wrong at once. May import pydantic, yaml, `errors` and `wire`; is imported by `cli` and `app` only.
"""
