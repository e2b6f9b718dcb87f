import pytest

from dragoman.bridge.guard.answers import security_headers


def headers(*, html):
    found = security_headers(html=html)
    assert len({name for name, _ in found}) == len(found)
    return {name.decode(): value.decode() for name, value in found}


def test_page_policy_allows_only_our_origin():
    directives = dict(part.split(" ", 1) for part in headers(html=True)["content-security-policy"].split("; "))
    assert directives == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "dragoman",
    }


def test_other_responses_are_sandboxed():
    policy = headers(html=False)["content-security-policy"]
    assert "default-src 'none'" in policy
    assert policy.endswith("sandbox")


@pytest.mark.parametrize("html", [True, False])
def test_every_response_is_isolated_from_other_pages(html):
    found = headers(html=html)
    assert found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer"
    assert found["cross-origin-opener-policy"] == "same-origin"
    assert found["cross-origin-resource-policy"] == "same-origin"
    assert "camera=()" in found["permissions-policy"]
    assert not any(name.startswith("access-control") for name in found)
