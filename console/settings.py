"""Django's settings. Everything that differs between installations comes from the environment."""

import os
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from runner.protocol import MAX_LOG_BYTES

BASE_DIR = Path(__file__).resolve().parent.parent


def required(name: str, remedy: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise ImproperlyConfigured(f"{name} is not set. {remedy}")
    return value


def number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {text!r}.") from None


def database(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(
            "DATABASE_URL must begin with postgresql://. Slipway runs on PostgreSQL only."
        )
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    host = options.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "OPTIONS": {
            **options,
            "pool": {"min_size": 1, "max_size": number("SLIPWAY_DATABASE_POOL", 20), "timeout": 10},
            "options": " ".join(
                (
                    # A forgotten open transaction would slow every claim down (dead rows cannot be removed).
                    "-c idle_in_transaction_session_timeout=60000",
                    "-c lock_timeout=30000",
                    # For `console.prepared_statements`: planning takes as long as carrying out.
                    "-c plan_cache_mode=force_generic_plan",
                )
            ),
        },
        "TEST": {"NAME": None},
    }


DEBUG = os.environ.get("SLIPWAY_DEBUG") == "1"
SECRET_KEY = required("SLIPWAY_SECRET_KEY", "`slipway up` makes one; in production set a long random text.")
# Older ones, separated by commas: what they have signed is still taken, nothing new is signed with them.
SECRET_KEY_FALLBACKS = [key for key in os.environ.get("SLIPWAY_SECRET_KEY_FALLBACKS", "").split(",") if key]
SLIPWAY_ENCRYPTION_KEYS = required(
    "SLIPWAY_ENCRYPTION_KEYS", "`slipway up` makes them; see docs/operating.md."
)
SLIPWAY_PUBLIC_URL = os.environ.get("SLIPWAY_PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
SLIPWAY_LEASE_SECONDS = number("SLIPWAY_LEASE_SECONDS", 120)
SLIPWAY_GIT_ALLOWED_HOSTS = [
    host for host in os.environ.get("SLIPWAY_GIT_ALLOWED_HOSTS", "").split(",") if host
]
SLIPWAY_MAX_LOG_BYTES = number("SLIPWAY_MAX_LOG_BYTES", MAX_LOG_BYTES)
SLIPWAY_METRICS_TOKEN = os.environ.get("SLIPWAY_METRICS_TOKEN", "")
SLIPWAY_LOG_RETENTION_DAYS = number("SLIPWAY_LOG_RETENTION_DAYS", 180)
SLIPWAY_MAX_STATE_BYTES = number("SLIPWAY_MAX_STATE_BYTES", 100 * 1024 * 1024)
# Beside these, every version that a plan was made from or that a deploy ended with is kept.
SLIPWAY_STATE_VERSIONS_KEPT = number("SLIPWAY_STATE_VERSIONS_KEPT", 100)

DATABASES = {
    "default": database(required("DATABASE_URL", "`slipway up` starts an embedded PostgreSQL and sets it."))
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

public = urlsplit(SLIPWAY_PUBLIC_URL)
ALLOWED_HOSTS = [public.hostname or "127.0.0.1", "127.0.0.1", "localhost", "[::1]"]
ALLOWED_HOSTS += [host for host in os.environ.get("SLIPWAY_ALLOWED_HOSTS", "").split(",") if host]
CSRF_TRUSTED_ORIGINS = [SLIPWAY_PUBLIC_URL]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "drf_spectacular",
    "rest_framework",
    "console.accounts",
    "console.audit",
    "console.live",
    "specs",
    "console.runners",
    "console.jobs",
    "console.identities",
    "console.plans",
    "console.state",
    "console.janitor",
    "console.pages",
]

MIDDLEWARE = [
    "console.middleware.ErrorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "console.compression.CompressedPages",
    "console.compression.CompressedStaticFiles",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "console.accounts.authentication.SessionMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"

# In a checkout these stand beside the packages; an installed wheel carries them inside the console.
ASSETS_DIR = BASE_DIR if (BASE_DIR / "templates").is_dir() else BASE_DIR / "console" / "assets"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ASSETS_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.pages.frame.shell",
            ],
        },
    }
]

STATIC_URL = "/static/"
STATICFILES_DIRS = [ASSETS_DIR / "static"]
# Served straight from the packages: nothing to collect, nothing to go stale.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "/"

# Five wrong passwords for one name from one address, then fifteen minutes of waiting.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_CALLABLE = "console.pages.sign_in.locked_out"
AXES_VERBOSE = False
AXES_ENABLE_ACCESS_FAILURE_LOG = True

SECURE_COOKIES = os.environ.get("SLIPWAY_INSECURE_COOKIES") != "1"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "slipway_session", "slipway_csrf"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if public.scheme == "https":
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

# The largest body of an ordinary request; the views that take plans and state have limits of their own.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

USE_TZ, TIME_ZONE, LANGUAGE_CODE, USE_I18N = True, "UTC", "en-gb", False

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "console.accounts.authentication.ApiTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["console.parsers.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "console.middleware.api_exception",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # `?format=` belongs to the logs
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Slipway",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "console.openapi.wrap_lists",
        "console.openapi.leave_anything_open",
        "console.wire_openapi.add_runner_endpoints",
    ],
    "ENUM_NAME_OVERRIDES": {
        "JobStatusEnum": "runner.protocol.JobStatus",
        "JobTypeEnum": "runner.protocol.JobType",
        "RequestableJobTypeEnum": "console.jobs.serializers.REQUESTABLE",
        "RunnerStatusEnum": "console.runners.models.RunnerStatus",
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("SLIPWAY_LOG_LEVEL", "INFO")},
    "loggers": {"uvicorn": {"level": "WARNING"}, "axes": {"level": "WARNING"}, "httpx": {"level": "WARNING"}},
}
