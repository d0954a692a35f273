"""The hooks by which packages above Specs add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from console.accounts.models import Organization

if TYPE_CHECKING:
    from specs.models import Spec


class Identities(Protocol):
    """Questions about cloud identities, whose package stands above Specs."""

    def find(self, organization: Organization, name: Any) -> Any:
        """Return the organization's identity with this id or slug, or refuse."""

    def require_usable(self, spec: Spec) -> None:
        """Refuse a Spec whose identity does not allow it, its environment, its pool or its region."""


#: Registered by `console/identities/joins.py`.
identities: Identities
