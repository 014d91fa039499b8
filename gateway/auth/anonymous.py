"""No authentication: everybody is the same principal."""

from gateway.core.front_door import Headers
from gateway.core.principal import ANONYMOUS, Principal


class Anonymous:
    """Takes everybody in."""

    def authenticate(self, _headers: Headers) -> Principal:
        """The one principal that everybody is."""
        return ANONYMOUS

    def takes_authorization(self, _headers: Headers) -> bool:
        """Never: whatever credential there is, is for an upstream."""
        return False
