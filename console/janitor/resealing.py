"""Sealing everything again with the first of the encryption keys, so that older keys can go."""

from collections import Counter
from collections.abc import Iterator

from django.apps import apps
from django.db import models, transaction
from django.db.models import F, Func, QuerySet

from console.vault import SEALED_FIELDS, SealedField, first_key_id, seal, unseal


def reseal_everything() -> Counter[str]:
    """Seal every value again, and count them by kind. Safe to repeat, and while the console runs."""
    counts: Counter[str] = Counter()
    for place in SEALED_FIELDS:
        # One at a time: each may be large, and a concurrent write waits for one row only.
        for pk in _sealed_with_older_keys(place.model, place.field).values_list("pk", flat=True):
            counts[place.model._meta.verbose_name_plural] += _reseal(place, pk)
    return counts


def still_sealed_with_older_keys() -> dict[str, int]:
    """Count the values that still need an older key, in every table with sealed values, registered or not."""
    counts = {
        f"{model._meta.label}.{field}": _sealed_with_older_keys(model, field).count()
        for model, field in sealed_columns()
    }
    return {place: count for place, count in counts.items() if count}


def sealed_columns() -> Iterator[tuple[type[models.Model], str]]:
    """Yield the columns whose names begin with "sealed", in all packages."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if isinstance(field, models.BinaryField) and field.name.startswith("sealed"):
                yield model, field.name


@transaction.atomic
def _reseal(place: SealedField, pk: object) -> int:
    row = place.model._default_manager.select_for_update(of=("self",)).filter(pk=pk).first()
    sealed = getattr(row, place.field, None)
    if row is None or sealed is None:
        return 0
    context = place.context(row)
    again = seal(unseal(sealed, context=context), context=context)
    return int(place.model._default_manager.filter(pk=pk).update(**{place.field: again}))


def _sealed_with_older_keys(model: type[models.Model], field: str) -> QuerySet[models.Model]:
    """Select rows by the key's name, which follows the first byte of each sealed value."""
    key = Func(F(field), 2, len(first_key_id()), function="substring", output_field=models.BinaryField())
    keyed = model._default_manager.exclude(**{field: None}).alias(key=key)
    older: QuerySet[models.Model] = keyed.exclude(key=first_key_id()).order_by("pk")
    return older
