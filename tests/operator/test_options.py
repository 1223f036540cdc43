"""Settings of the operator: flags, variables, defaults and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from disque_operator.options import Options, parse


def options(argv: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> Options:
    return parse(argv, environ or {}, "c0ffee", "operators")


def test_defaults_are_all_namespaces_and_a_random_identity() -> None:
    subject = options()
    assert subject.namespaces == ()
    assert subject.identity.endswith("_c0ffee")
    assert (subject.lease, subject.lease_namespace) == ("disque-operator", "operators")
    assert subject.image.startswith("disqued:")
    assert (subject.liveness, subject.metrics_port) == ("", 0)


def test_identity_defaults_to_the_pod_name() -> None:
    assert options(environ={"POD_NAME": "disque-operator-7f-x"}).identity == "disque-operator-7f-x"


def test_flag_overrides_variable() -> None:
    environ = {"DISQUE_OPERATOR_WORKERS": "3", "DISQUE_OPERATOR_LOG_FORMAT": "text"}
    subject = options(["--workers", "5"], environ)
    assert (subject.workers, subject.log_format) == (5, "text")


@pytest.mark.parametrize("text", ["a,b", "a b", " a, b ,"])
def test_namespaces_are_separated_by_commas_or_spaces(text: str) -> None:
    assert options(["--namespaces", text]).namespaces == ("a", "b")


def test_lease_namespace_defaults_to_the_only_watched_namespace() -> None:
    assert options(["--namespaces", "team"]).lease_namespace == "team"
    assert options(["--namespaces", "team,other"]).lease_namespace == "operators"
    assert options(["--namespaces", "team", "--lease-namespace", "mine"]).lease_namespace == "mine"


@pytest.mark.parametrize(
    ("argv", "environ", "says"),
    [
        (
            ["--workers", "0"],
            {},
            "invalid value '0' of --workers: must be the number of clusters that are reconciled concurrently",
        ),
        ([], {"DISQUE_OPERATOR_WORKERS": "many"}, "invalid value 'many' of DISQUE_OPERATOR_WORKERS"),
        (["--log-format", "xml"], {}, "invalid value 'xml' of --log-format: must be one of json, text"),
        (["--metrics-port", "70000"], {}, "invalid value '70000' of --metrics-port"),
        (["--resync", "1"], {}, "10 to 3600"),
        (["--liveness", "8080"], {}, "for example http://0.0.0.0:8080/healthz"),
    ],
)
def test_invalid_value_is_an_error(
    argv: list[str], environ: dict[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        options(argv, environ)
    assert end.value.code == 2
    assert says in capsys.readouterr().err
