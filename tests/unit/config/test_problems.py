from gateway.config.problems import ConfigError, Problem
from gateway.errors import GatewayError


def test_problem_is_one_line_with_everything_the_operator_needs() -> None:
    problem = Problem(
        "config/gateway.yaml",
        12,
        "upstreams.docs.timeout: not a duration",
        found='"soon"',
        allowed="a number with ms, s, m or h, such as 60s",
        remedy="write timeout: 60s",
    )
    assert str(problem) == (
        'config/gateway.yaml:12: upstreams.docs.timeout: not a duration; found "soon"; '
        "allowed: a number with ms, s, m or h, such as 60s; write timeout: 60s"
    )


def test_problem_leaves_out_what_it_does_not_have() -> None:
    assert str(Problem("environment", None, "not set")) == "environment: not set"


def test_error_lists_every_problem_on_a_line_of_its_own() -> None:
    error = ConfigError((Problem("a", 1, "x"), Problem("a", 2, "y")))
    assert isinstance(error, GatewayError)
    assert str(error) == "a:1: x\na:2: y"
