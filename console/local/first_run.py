"""The first start: create an admin, an organization, and the demo Spec."""

from dataclasses import dataclass

from django.db import transaction

from console.accounts.models import Installation, Organization, User
from console.accounts.services import create_organization, reset_password
from console.runners.services import create_registration_token, default_pool
from specs.services import create_spec_from_blueprint

ADMIN = "admin"
ORGANIZATION = "demo"


@dataclass(frozen=True, slots=True)
class FirstRun:
    admin_username: str
    #: Shown at each start until somebody has signed in with it; None from then on.
    admin_password: str | None
    registration_token: str | None


@transaction.atomic
def prepare(*, need_runner_token: bool = True) -> FirstRun:
    """Create the content of a new installation once, all of it or nothing."""
    Installation.objects.get_or_create(pk=1)
    if not User.objects.exists():
        _populate()
    return FirstRun(ADMIN, _password_to_show(), new_runner_token() if need_runner_token else None)


def _password_to_show() -> str | None:
    """Return a new password until the first sign-in: a killed start may not have shown the last one."""
    admin = User.objects.filter(username=ADMIN, last_login=None).first()
    return reset_password(user=admin) if admin else None


def _populate() -> None:
    # The admin operates the installation: staff may drain all of it.
    admin = User.objects.create(username=ADMIN, is_staff=True)
    organization = create_organization(name="Demo", slug=ORGANIZATION, admin=admin)
    create_spec_from_blueprint(
        organization=organization,
        name="demo",
        slug="demo",
        blueprint="demo",
        pool_id=default_pool(organization).pk,
        author=admin,
    )


def new_runner_token() -> str | None:
    """Create a registration token for one more runner of the first organization."""
    organization = Organization.objects.filter(slug=ORGANIZATION).first()
    if organization is None:
        return None
    return create_registration_token(
        organization=organization, pool=default_pool(organization), created_by=None
    )
