"""The built-in blueprints are sound: formatted, parsed, consistent with their forms, and safe to destroy."""

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml

from runner.terraform.binary import find_terraform
from specs.document import BLUEPRINTS, load_blueprint

NAMES = sorted(path.parent.name for path in BLUEPRINTS.glob("*/blueprint.yaml"))
#: Those that build in a cloud. They share the names of their outputs.
PLATFORMS = [name for name in NAMES if name.endswith("-platform")]

every_blueprint = pytest.mark.parametrize("name", NAMES)
every_platform = pytest.mark.parametrize("name", PLATFORMS)

#: Kinds of discovered resources that a form can offer to pick from.
PICKERS = {"region", "vpc", "subnet", "hosted_zone", "key_pair", "certificate", "cluster"}
COMPONENTS = {"cluster", "argocd", "database", "dns_zone"}
#: What the console turns into components, or shows beside them, whichever the cloud.
PLATFORM_OUTPUTS = {
    "cluster_name",
    "cluster_endpoint",
    "cluster_ca_certificate",
    "kubeconfig_command",
    "argocd_url",
    "argocd_initial_password_command",
    "database_endpoint",
    "database_name",
    "database_secret",
    "dns_zone_name",
    "dns_name_servers",
    "network_id",
    "private_subnet_ids",
}

#: What a secret looks like in a file, whoever issued it.
SECRETS = re.compile(
    r"AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|-----BEGIN|eyJ[\w-]{10,}\.|AIza[\w-]{30,}|gh[pousr]_\w{30,}|xox[bap]-"
)
#: Arguments by which a provider would be given credentials in the file.
CREDENTIALS = re.compile(
    r"^\s*(access_key|secret_key|client_secret|client_certificate\w*|client_key|credentials|access_token|"
    r"oidc_token|token|username|config_path)\s*=",
    re.MULTILINE,
)


# Reading a configuration


@dataclass(frozen=True)
class Block:
    """One top-level block: its address, what is in it, and the addresses it refers to."""

    address: str
    body: dict[str, Any]
    references: frozenset[str]


@dataclass
class Configuration:
    blocks: dict[str, Block] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    providers: list[Block] = field(default_factory=list)

    def of_kind(self, kind: str) -> dict[str, Block]:
        """Variables, outputs, locals and data sources by their names, resources by their addresses."""
        if kind == "resource":
            return {address: block for address, block in self.blocks.items() if _is_resource(address)}
        return {
            address.removeprefix(f"{kind}."): block
            for address, block in self.blocks.items()
            if address.startswith(f"{kind}.")
        }

    def names_used(self) -> set[str]:
        """Return the references of all blocks except the variables' own validations."""
        blocks = [block for block in self.blocks.values() if not block.address.startswith("var.")]
        return set().union(*(block.references for block in [*blocks, *self.providers]))


def _is_resource(address: str) -> bool:
    return address.split(".", maxsplit=1)[0] not in {"var", "local", "output", "data", "module"}


@cache
def read(name: str) -> Configuration:
    configuration = Configuration()
    for path in sorted((BLUEPRINTS / name).glob("*.tf")):
        parsed = hcl2.loads(path.read_text(), serialization_options=_OPTIONS)
        for kind, entries in parsed.items():
            for entry in entries:
                _add(configuration, kind, entry)
    return configuration


_OPTIONS = hcl2.SerializationOptions(with_comments=False)


def _add(configuration: Configuration, kind: str, entry: dict[str, Any]) -> None:
    if kind == "terraform":
        configuration.settings.update(entry)
    elif kind == "locals":
        for name, value in entry.items():
            if name != "__is_block__":
                _declare(configuration, f"local.{name}", {"value": value})
    elif kind == "provider":
        for label, body in entry.items():
            configuration.providers.append(Block(label.strip('"'), body, frozenset(references_in(body))))
    else:
        for address, body in _labelled_blocks(kind, entry):
            _declare(configuration, address, body)


def _labelled_blocks(kind: str, entry: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    prefix = {"variable": "var.", "resource": ""}.get(kind, f"{kind}.")
    for label, body in entry.items():
        if kind in {"resource", "data"}:
            for name, inner in body.items():
                yield f"{prefix}{label}.{name}".replace('"', ""), inner
        else:
            yield f"{prefix}{label}".replace('"', ""), body


def _declare(configuration: Configuration, address: str, body: dict[str, Any]) -> None:
    assert address not in configuration.blocks, f"{address} is declared twice"
    configuration.blocks[address] = Block(address, body, frozenset(references_in(body)))


# Finding references

#: A name, and what follows it by dots: `aws_subnet.private`, `each.value`, `data.aws_partition.current`.
_TRAVERSAL = re.compile(r"(?<![\w.\]-])([a-z_]\w*)((?:\.[a-z_]\w*)+)", re.IGNORECASE)
_ITERATOR = re.compile(r"\bfor\s+(\w+)(?:\s*,\s*(\w+))?\s+in\b")
#: Names that the language itself gives a meaning to.
_BUILT_IN = {"each", "self", "count", "path", "terraform"}


def references_in(body: Any) -> set[str]:
    """The addresses that a block refers to: `var.name`, `local.name`, `data.type.name`, `type.name`."""
    iterators = set(_dynamic_labels(body)) | _BUILT_IN
    addresses = set()
    for code in map(_without_literals, _strings(body)):
        loops = {name for match in _ITERATOR.finditer(code) for name in match.groups() if name}
        for root, rest in _TRAVERSAL.findall(code):
            if root not in iterators | loops:
                addresses.add(_address(root, rest.lstrip(".").split(".")))
    return addresses


def _address(root: str, rest: list[str]) -> str:
    return ".".join([root, *rest[: 2 if root == "data" else 1]])


def _strings(value: Any) -> Iterator[str]:
    """Every expression of a block, keys of maps included. What ignore_changes names are not references."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key != "ignore_changes":
                yield from _strings(item)


def _dynamic_labels(value: Any) -> Iterator[str]:
    """A dynamic block's label is the name of its iterator."""
    if isinstance(value, list):
        for item in value:
            yield from _dynamic_labels(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "dynamic":
                yield from (label.strip('"') for block in item for label in block)
            yield from _dynamic_labels(item)


def _without_literals(text: str) -> str:
    """The code of an expression: strings are dropped, what is interpolated in them is kept."""
    code, quoted, position = [], [False], 0
    while position < len(text):
        two, one = text[position : position + 2], text[position]
        if quoted[-1] and two == "${":
            quoted.append(False)
            code.append(" ")
            position += 2
            continue
        if quoted[-1] and one == "\\":
            position += 2
            continue
        if one == '"':
            _toggle(quoted)
        elif not quoted[-1]:
            _track_braces(quoted, one)
            code.append(one)
        position += 1
    return "".join(code)


def _toggle(quoted: list[bool]) -> None:
    if quoted[-1]:
        quoted.pop()
    else:
        quoted.append(True)


def _track_braces(quoted: list[bool], character: str) -> None:
    if character == "{":
        quoted.append(False)
    elif character == "}" and len(quoted) > 1:
        quoted.pop()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('"${var.name}-x.y"', {"var.name"}),
        ('"a \\"quoted\\" ${local.a} and ${data.t.n.attribute}"', {"local.a", "data.t.n"}),
        ("${aws_subnet.private[each.key].id}", {"aws_subnet.private"}),
        ("${[for zone in local.zones : zone.name]}", {"local.zones"}),
        ('${merge({ "a.b" = var.x }, { c = "${t_y.z.id}" })}', {"var.x", "t_y.z"}),
        ('"literal.text only"', set()),
    ],
)
def test_the_reader_sees_references_and_nothing_else(expression: str, expected: set[str]) -> None:
    assert references_in({"value": expression}) == expected


# Terraform


def terraform(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The real one, without the colours and the settings of whoever runs the suite."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "CHECKPOINT_DISABLE": "1",
        "TF_IN_AUTOMATION": "1",
    }
    return subprocess.run(
        [binary(), *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@cache
def binary() -> str:
    return find_terraform().path


def plan_of_variables(name: str, values: dict[str, Any], folder: Path) -> subprocess.CompletedProcess[str]:
    """Plan the blueprint's variables alone, which checks values as a deploy would and needs no provider."""
    shutil.copy(BLUEPRINTS / name / "variables.tf", folder)
    (folder / "test.auto.tfvars.json").write_text(json.dumps(values))
    return terraform("plan", "-input=false", "-no-color", cwd=folder)


def join_lines(text: str) -> str:
    """A message of Terraform's as one line, without the frame that it draws."""
    return " ".join(text.replace("│", " ").split())


@every_blueprint
def test_files_are_formatted_as_terraform_formats_them(name: str) -> None:
    completed = terraform("fmt", "-check", "-diff", "-recursive", cwd=BLUEPRINTS / name)
    assert (completed.returncode, completed.stdout) == (0, "")


@every_blueprint
def test_terraform_reads_the_configuration(name: str, tmp_path: Path) -> None:
    for filename, text in load_blueprint(name).files.items():
        (tmp_path / filename).write_text(text)
    completed = terraform("providers", cwd=tmp_path)
    assert completed.returncode == 0, completed.stderr


@every_blueprint
def test_the_defaults_pass_the_blueprints_own_validation(name: str, tmp_path: Path) -> None:
    completed = plan_of_variables(name, {}, tmp_path)
    assert completed.returncode == 0, completed.stderr


@every_blueprint
def test_every_choice_of_the_form_passes_the_blueprints_own_validation(name: str, tmp_path: Path) -> None:
    choices = {key: form["choices"] for key, form in form_of(name).items() if "choices" in form}
    # One after the other, all variables at once: as many plans as the longest list has choices.
    for number in range(max(map(len, choices.values()), default=0)):
        values = {key: options[number % len(options)] for key, options in choices.items()}
        completed = plan_of_variables(name, values, tmp_path)
        assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("demo", {"delay": 61}, "between 0 and 60 seconds"),
        ("aws-platform", {"name": "Platform"}, "starts with a letter"),
        ("aws-platform", {"name": "two--hyphens"}, "single hyphens"),
        ("aws-platform", {"region": "Frankfurt"}, "such as eu-central-1"),
        ("aws-platform", {"vpc_cidr": "10.0.0.0/24"}, "from /16 to /20"),
        ("aws-platform", {"zone_count": 1}, "2, 3 or 4 zones"),
        ("aws-platform", {"tags": {"aws:owner": "x"}}, "Choose another key"),
        ("aws-platform", {"cluster_endpoint_cidrs": []}, "set cluster_endpoint_public to false"),
        ("aws-platform", {"cluster_admin_arns": ["alice"]}, "ARN of an IAM role or user"),
        ("aws-platform", {"domain": "Example.com."}, "without a dot at its end"),
        ("aws-platform", {"database_username": "postgres"}, "is not admin, rdsadmin or postgres"),
        (
            "aws-platform",
            {"extra_node_groups": {"general": {"instance_types": ["m7i.large"]}}},
            "exists already",
        ),
        (
            "aws-platform",
            {"extra_node_groups": {"gpu": {"instance_types": ["g6.xlarge"], "taints": {"gpu": "yes"}}}},
            "value:EFFECT",
        ),
        ("gcp-platform", {"project_id": "My Project"}, "given by its id"),
        ("gcp-platform", {"region": "europe-west3-a"}, "without a zone's letter"),
        ("gcp-platform", {"labels": {"Owner": "x"}}, "keys start with a letter"),
        ("gcp-platform", {"cluster_secrets_key": "my-key"}, "projects/PROJECT/locations"),
        ("gcp-platform", {"database_name": "postgres"}, "exists already"),
        ("azure-platform", {"subscription_id": "production"}, "given by its id"),
        ("azure-platform", {"region": "North Europe"}, "such as northeurope"),
        ("azure-platform", {"parent_zone_id": "example.org"}, "by its resource id"),
        ("azure-platform", {"database_storage_gb": 100}, "Azure offers 32, 64"),
        ("azure-platform", {"zones": []}, "name at least one"),
        (
            "azure-platform",
            {"extra_node_pools": {"gpu": {"size": "S", "taints": ["gpu"]}}},
            "key=value:Effect",
        ),
    ],
)
def test_a_value_that_would_fail_in_the_cloud_is_refused_with_the_remedy(
    name: str, values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    completed = plan_of_variables(name, values, tmp_path)
    assert completed.returncode == 1
    assert "Invalid value for variable" in completed.stderr
    assert message in join_lines(completed.stderr)


# References


@every_blueprint
def test_every_reference_leads_to_a_declaration(name: str) -> None:
    configuration = read(name)
    blocks = [*configuration.blocks.values(), *configuration.providers]
    missing = {
        f"{block.address} refers to {reference}"
        for block in blocks
        for reference in block.references
        if reference not in configuration.blocks
    }
    assert missing == set()


@every_blueprint
@pytest.mark.parametrize("kind", ["var", "local", "data"])
def test_nothing_is_declared_in_vain(name: str, kind: str) -> None:
    configuration = read(name)
    declared = {f"{kind}.{address}" for address in configuration.of_kind(kind)}
    assert declared - configuration.names_used() == set()


@every_blueprint
def test_every_provider_in_use_is_required_with_its_source_and_version(name: str) -> None:
    configuration = read(name)
    addresses = [*configuration.of_kind("resource"), *configuration.of_kind("data")]
    # terraform_data comes with Terraform itself.
    names_used = {address.split("_")[0] for address in addresses} - {"terraform"}
    required = required_providers(configuration)
    assert names_used | {provider.address for provider in configuration.providers} == set(required)
    for provider in required.values():
        assert re.fullmatch(r'"hashicorp/[a-z]+"', provider["source"])
        assert provider["version"].startswith('"~> ')


def required_providers(configuration: Configuration) -> dict[str, Any]:
    blocks = configuration.settings.get("required_providers", [])
    return {key: value for block in blocks for key, value in block.items() if key != "__is_block__"}


# The form


def form_of(name: str) -> dict[str, Any]:
    variables: dict[str, Any] = meta(name)["variables"]
    return variables


def meta(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((BLUEPRINTS / name / "blueprint.yaml").read_text())
    return loaded


def declared_variables(name: str) -> dict[str, Any]:
    """Return the variables in the form's shape: type, description and default, without HCL's quotes."""
    options = hcl2.SerializationOptions(with_comments=False, strip_string_quotes=True, explicit_blocks=False)
    parsed = hcl2.loads((BLUEPRINTS / name / "variables.tf").read_text(), serialization_options=options)
    return {key: body for entry in parsed["variable"] for key, body in entry.items()}


def compact(type_: str) -> str:
    return re.sub(r"\s+|^\$\{|\}$", "", type_) if type_.startswith("${") else re.sub(r"\s+", "", type_)


@every_blueprint
def test_the_form_and_the_configuration_have_the_same_variables(name: str) -> None:
    form, declared = form_of(name), declared_variables(name)
    assert list(form) == list(declared)
    for key, variable in declared.items():
        assert compact(form[key]["type"]) == compact(variable["type"]), key
        assert form[key]["description"] == variable["description"], key
        assert ("default" in form[key]) == ("default" in variable), key
        assert same_value(form[key].get("default"), variable.get("default")), key


def same_value(first: Any, second: Any) -> bool:
    """Equal, and of one type: YAML's 17 is not HCL's "17"."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


@every_blueprint
def test_every_field_of_the_form_is_usable(name: str) -> None:
    known_keys = {"type", "description", "default", "choices", "picker", "group", "sensitive"}
    for key, form in form_of(name).items():
        assert set(form) <= known_keys, key
        assert form["description"].endswith("."), key
        assert form.get("default") in form.get("choices", [form.get("default")]), key
        assert form.get("picker") in {None, *PICKERS}, key


@every_platform
def test_a_platforms_form_is_grouped_and_every_group_stays_together(name: str) -> None:
    groups = [form["group"] for form in form_of(name).values()]
    runs = [group for group, _ in itertools.groupby(groups)]
    assert runs == ["General", "Network", "Cluster", "Nodes", "Database", "DNS", "Argo CD"]


@every_blueprint
def test_every_declared_variable_is_typed_and_described(name: str) -> None:
    for key, variable in declared_variables(name).items():
        assert variable["type"], key
        assert variable["description"], key


# Outputs and components


@every_blueprint
def test_components_come_from_outputs_that_exist(name: str) -> None:
    components = meta(name).get("components", {})
    assert set(components) <= COMPONENTS
    assert set(components.values()) <= set(read(name).of_kind("output"))


@every_platform
def test_every_platform_fills_every_component_from_outputs_of_the_same_names(name: str) -> None:
    assert set(meta(name)["components"]) == COMPONENTS
    assert set(read(name).of_kind("output")) >= PLATFORM_OUTPUTS
    assert meta(name)["clouds"] == [name.removesuffix("-platform")]


@every_platform
def test_every_output_is_described_and_what_gives_access_is_sensitive(name: str) -> None:
    outputs = read(name).of_kind("output")
    for key, output in outputs.items():
        assert output.body["description"], key
        assert not any("random_password" in reference for reference in output.references), key
    assert outputs["cluster_ca_certificate"].body["sensitive"] is True


# Secrets


@every_blueprint
def test_no_file_holds_a_secret_a_credential_or_a_backend(name: str) -> None:
    for path in (BLUEPRINTS / name).iterdir():
        text = path.read_text()
        assert not SECRETS.search(text), path.name
        assert not re.search(r"\bbackend\s+\"", text), path.name
    for provider in read(name).providers:
        assert not CREDENTIALS.search("\n".join(f"{key} =" for key in _keys(provider.body))), provider.address


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


@every_blueprint
def test_a_variable_for_a_secret_has_no_default(name: str) -> None:
    for key, variable in declared_variables(name).items():
        if re.search(r"password|secret|token|credential", key):
            assert variable.get("default") in {None, ""}, key


# Destroying


@every_platform
def test_a_destroy_begins_with_the_protection(name: str) -> None:
    """The protection is destroyed before everything it depends on, so a refusal keeps all of that."""
    configuration = read(name)
    guarded = reachable(configuration, "terraform_data.protection")
    assert set(configuration.of_kind("resource")) - guarded == set()


def reachable(configuration: Configuration, start: str) -> set[str]:
    reached, waiting = set(), [start]
    while waiting:
        address = waiting.pop()
        if address in configuration.blocks and address not in reached:
            reached.add(address)
            waiting += configuration.blocks[address].references
    return reached


@every_platform
def test_a_protected_platform_refuses_to_be_destroyed_and_says_how_it_can_be(
    name: str, tmp_path: Path
) -> None:
    write_protection(name, tmp_path)
    assert terraform("apply", "-auto-approve", "-input=false", cwd=tmp_path).returncode == 0

    refused = terraform("destroy", "-auto-approve", "-input=false", "-no-color", cwd=tmp_path)
    assert refused.returncode == 1
    assert "Set deletion_protection to false, deploy, then destroy" in join_lines(refused.stderr)
    assert "terraform_data.stand_in" in terraform("state", "list", cwd=tmp_path).stdout

    unprotected = ("-auto-approve", "-input=false", "-var=deletion_protection=false")
    assert terraform("apply", *unprotected, cwd=tmp_path).returncode == 0
    assert terraform("destroy", *unprotected, cwd=tmp_path).returncode == 0
    assert terraform("state", "list", cwd=tmp_path).stdout == ""


def write_protection(name: str, folder: Path) -> None:
    """The platform's own protection, in front of something that needs no cloud."""
    shutil.copy(BLUEPRINTS / name / "variables.tf", folder)
    text = (BLUEPRINTS / name / "protection.tf").read_text()
    text = re.sub(r"depends_on = \[.*?\]", "depends_on = [terraform_data.stand_in]", text, flags=re.DOTALL)
    (folder / "main.tf").write_text(text + '\nresource "terraform_data" "stand_in" {}\n')


# The page about it


@every_platform
def test_the_readme_answers_what_an_engineer_asks_first(name: str) -> None:
    text = (BLUEPRINTS / name / "README.md").read_text()
    for heading in ("What it creates", "Before you deploy", "After the deploy", "Destroying", "Verification"):
        assert f"## {heading}\n" in text
    assert "not been applied" in " ".join(text.split())


@every_platform
def test_the_readme_names_only_variables_and_outputs_that_exist(name: str) -> None:
    text = (BLUEPRINTS / name / "README.md").read_text()
    configuration = read(name)
    known_keys = {*configuration.of_kind("var"), *configuration.of_kind("output")}
    assert set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text)) - known_keys == set()
