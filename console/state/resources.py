"""The content of a state: resources, their attributes and outputs, with everything sensitive masked."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from console.state.masking import NO_SECRETS, Secrets
from runner.protocol import MASK

#: Providers mark what is sensitive in their schema, and older Terraforms did not write that into the state.
SECRET_NAME = re.compile(
    r"(passw(or)?d|passphrase|secret|token|private_key(_pem)?|(secret|access|api)_key|connection_string|"
    r"kubeconfig|credentials?)$",
    re.IGNORECASE,
)
MODULE_STEP = re.compile(r'module\.[^.\[]+(?:\[(?:"[^"]*"|[^\]]*)\])?')


@dataclass(frozen=True, slots=True)
class Instance:
    """One thing that Terraform manages or reads."""

    address: str
    module: str
    mode: str
    type: str
    provider: str
    status: str
    depends_on: tuple[str, ...]
    raw: dict[str, Any] = field(repr=False)
    sensitive_paths: tuple[tuple[Any, ...], ...] = field(repr=False)
    secrets: Secrets = field(default=NO_SECRETS, repr=False)

    @property
    def is_data(self) -> bool:
        return self.mode == "data"

    @property
    def local_address(self) -> str:
        """The address within its module."""
        return self.address.removeprefix(f"{self.module}.") if self.module else self.address

    def attributes(self) -> dict[str, Any]:
        """Return the attributes with sensitive values masked."""
        attributes: Any = self.raw
        for path in self.sensitive_paths:
            attributes = masked_at(attributes, path)
        if attributes == MASK:
            return {}
        return {name: self.secrets.hide(_by_name(name, value)) for name, value in attributes.items()}


@dataclass(frozen=True, slots=True)
class Output:
    name: str
    sensitive: bool
    value: Any


@dataclass(slots=True)
class Module:
    """A module with what is in it; the root has no name."""

    name: str
    modules: dict[str, "Module"] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.instances) + sum(module.count for module in self.modules.values())

    @property
    def children(self) -> list["Module"]:
        return list(self.modules.values())


def instances(content: dict[str, Any], secrets: Secrets = NO_SECRETS) -> Iterator[Instance]:
    """Every instance of every resource, in the order of the document."""
    for resource in content.get("resources") or []:
        for instance in resource.get("instances") or []:
            yield _instance(resource, instance, secrets)


def outputs(content: dict[str, Any], secrets: Secrets = NO_SECRETS) -> list[Output]:
    return [
        Output(
            name,
            bool(output.get("sensitive")),
            MASK if output.get("sensitive") else secrets.hide(output.get("value")),
        )
        for name, output in sorted((content.get("outputs") or {}).items())
    ]


def find_instances(content: dict[str, Any], text: str, secrets: Secrets = NO_SECRETS) -> list[Instance]:
    """The instances whose address or type contains the text."""
    needle = text.strip().lower()
    return [
        instance
        for instance in instances(content, secrets)
        if needle in instance.address.lower() or needle in instance.type.lower()
    ]


def marked_values(content: dict[str, Any]) -> Iterator[Any]:
    """Yield values that the state marks as sensitive; a resource may hold an unmarked copy of one."""
    for instance in instances(content):
        yield from (_value_at(instance.raw, path) for path in instance.sensitive_paths)
    for output in (content.get("outputs") or {}).values():
        if output.get("sensitive"):
            yield output.get("value")


def tree(instances: Iterable[Instance]) -> Module:
    root = Module("")
    for instance in instances:
        module = root
        for step in MODULE_STEP.findall(instance.module):
            module = module.modules.setdefault(step, Module(step))
        module.instances.append(instance)
    return root


def masked_at(value: Any, path: tuple[Any, ...]) -> Any:
    """A copy of the value, with what is at the path replaced."""
    if not path:
        return None if value is None else MASK
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and step in value:
        return {**value, step: masked_at(value[step], rest)}
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        return [*value[:step], masked_at(value[step], rest), *value[step + 1 :]]
    return value


def _value_at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def _by_name(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _by_name(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_by_name(name, item) for item in value]
    return MASK if isinstance(value, str) and value and SECRET_NAME.search(name) else value


def _instance(resource: dict[str, Any], instance: dict[str, Any], secrets: Secrets) -> Instance:
    module, mode = str(resource.get("module", "")), str(resource.get("mode", "managed"))
    name = f"{resource.get('type')}.{resource.get('name')}{_index(instance)}"
    local = f"data.{name}" if mode == "data" else name
    status = str(instance.get("status", ""))
    if instance.get("deposed"):
        status = f"deposed {instance['deposed']}"
    return Instance(
        address=f"{module}.{local}" if module else local,
        module=module,
        mode=mode,
        type=str(resource.get("type", "")),
        provider=str(resource.get("provider", "")),
        status=status,
        depends_on=tuple(str(address) for address in instance.get("dependencies") or []),
        raw=instance.get("attributes") or instance.get("attributes_flat") or {},
        sensitive_paths=tuple(_path(path) for path in instance.get("sensitive_attributes") or []),
        secrets=secrets,
    )


def _index(instance: dict[str, Any]) -> str:
    if "index_key" not in instance:
        return ""
    key = instance["index_key"]
    return f'["{key}"]' if isinstance(key, str) else f"[{key}]"


def _path(steps: Any) -> tuple[Any, ...]:
    """Terraform's steps (`{type: get_attr, value: name}`, `{type: index, value: {value: 0, …}}`) as keys."""
    if not isinstance(steps, list):
        return ()  # of a shape that we do not know: the whole instance is sensitive
    return tuple(_step(step) for step in steps)


def _step(step: Any) -> Any:
    value = step.get("value") if isinstance(step, dict) else step
    return value.get("value") if isinstance(value, dict) else value
