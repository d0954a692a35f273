"""Rights, and the roles that bundle them. A door and the page in front of it ask the same question here."""

from enum import StrEnum


class Right(StrEnum):
    """Something a member may do in an organization. Its doors are in the packages' `access` modules."""

    SEE = "see"
    MANAGE_SPECS = "manage_specs"
    PLAN = "plan"
    APPLY = "apply"
    APPROVE = "approve"
    CANCEL = "cancel"
    # Whole states and sensitive outputs, in clear.
    READ_SECRETS = "read_secrets"
    WRITE_STATE = "write_state"
    TEST_IDENTITIES = "test_identities"
    # The settings of a protected Spec that keep its approvals and confirmations in force.
    PROTECT_SPECS = "protect_specs"
    DELETE_SPECS = "delete_specs"
    # Roll back, choose a backend, release another person's lock.
    MANAGE_STATE = "manage_state"
    MANAGE_VARIABLE_SETS = "manage_variable_sets"
    MANAGE_BLUEPRINTS = "manage_blueprints"
    MANAGE_IDENTITIES = "manage_identities"
    MANAGE_RUNNERS = "manage_runners"
    # Members, invitations, and other people's API tokens.
    MANAGE_PEOPLE = "manage_people"
    MANAGE_SETTINGS = "manage_settings"
    READ_AUDIT = "read_audit"


VIEWING = frozenset({Right.SEE})
OPERATING = VIEWING | {
    Right.MANAGE_SPECS,
    Right.PLAN,
    Right.APPLY,
    Right.APPROVE,
    Right.CANCEL,
    Right.READ_SECRETS,
    Right.WRITE_STATE,
    Right.TEST_IDENTITIES,
}

#: Every role, one line each, in the order in which people choose one. A refusal names the first that has the
#: right. The database checks the names; after a change `make lint` asks for the migration.
ROLES: dict[str, frozenset[Right]] = {
    "viewer": VIEWING,
    "operator": OPERATING,
    "admin": frozenset(Right),
}

#: The role of whoever creates an organization.
FOUNDER = "admin"


def rights_of(role: str) -> frozenset[Right]:
    """Return the rights of a role; an unknown role has none."""
    return ROLES.get(role, frozenset())


def roles_with(right: Right) -> list[str]:
    """List the roles that have a right, in the order of the table."""
    return [role for role, rights in ROLES.items() if right in rights]


def role_choices() -> list[tuple[str, str]]:
    """List each role with its label for people."""
    return [(role, role.capitalize()) for role in ROLES]
