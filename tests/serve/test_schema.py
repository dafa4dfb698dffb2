"""Whatever a client sends, the answer is one that the schema describes, and never a failure of the server."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sightline.serve.app import create_app

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ADDRESSES = [(path, method) for path, methods in create_app({}).openapi()["paths"].items() for method in methods]


@pytest.fixture(scope="module")
def schema(address):
    return schemathesis.openapi.from_url(f"{address}/api/openapi.json")


def test_every_verb_is_described():
    assert {"/api/explain", "/api/align", "/api/translate", "/api/contrast", "/api/faithfulness"} <= {
        path for path, _ in ADDRESSES
    }


@pytest.mark.parametrize(("path", "method"), ADDRESSES)
def test_every_answer_is_as_the_schema_says(schema, path, method):
    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy())
    def check(case):
        case.call_and_validate(checks=CHECKS, timeout=120)

    check()
