"""The connection string for packages that need a connection of their own."""

from django.db import connection
from psycopg.conninfo import make_conninfo


def conninfo() -> str:
    """Return the connection string of Django's default database, as it is now (tests change its name)."""
    settings = connection.settings_dict
    values = {
        "dbname": settings["NAME"],
        "user": settings["USER"],
        "password": settings["PASSWORD"],
        "host": settings["HOST"],
        "port": settings["PORT"],
    }
    return make_conninfo("", **{key: str(value) for key, value in values.items() if value})
