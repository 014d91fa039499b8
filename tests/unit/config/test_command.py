import pytest

from gateway.config.command import secrets_in, shown_arguments

CASES = [
    (["mcp-server-git", "--repository", "/repo", "-v"], ["mcp-server-git", "--repository", "/repo", "-v"], []),
    (["--token", "s3cret", "x"], ["--token", "***", "x"], ["s3cret"]),
    (["--api-key=s3cret"], ["--api-key=***"], ["s3cret"]),
    (["API_KEY=s3cret=="], ["API_KEY=***"], ["s3cret=="]),
    (["--header", "Authorization: Bearer s3cret"], ["--header", "***"], ["Authorization: Bearer s3cret"]),
    (["Authorization:Bearer s3cret"], ["Authorization:***"], ["Bearer s3cret"]),
    (["--password", "--verbose"], ["--password", "--verbose"], []),
    (["--mode=fast", "a=b"], ["--mode=fast", "a=b"], []),
    (["https://a.test/mcp", "-y", "@scope/package@1.2"], ["https://a.test/mcp", "-y", "@scope/package@1.2"], []),
    ([], [], []),
]


@pytest.mark.parametrize(("arguments", "shown", "secrets"), CASES)
def test_an_argument_that_a_name_gives_away_as_a_secret_is_not_shown(
    arguments: list[str], shown: list[str], secrets: list[str]
) -> None:
    assert shown_arguments(arguments) == shown
    assert secrets_in(arguments) == secrets
