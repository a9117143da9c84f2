"""What Schemathesis must know of the GraphQL API of files: its scalar, and the form of its errors."""

import schemathesis
from hypothesis import strategies as st
from schemathesis.graphql import nodes

schemathesis.graphql.scalar("Size", st.integers(min_value=0, max_value=2**53).map(nodes.Int))


@schemathesis.check
def errors_have_a_client_status(ctx, response, case):
    assert response.status_code < 500, response.text
    if "graphql" in case.path:
        for error in response.json().get("errors") or []:
            assert error.get("extensions", {}).get("status", 400) < 500, response.text
