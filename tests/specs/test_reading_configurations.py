"""Reading configurations, and refusing bad ones with the file, the line and the remedy."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.errors import BadInput
from specs.configuration import (
    Configuration,
    _declaration_pattern,
    _line_of,
    _variable_lines,
    check_variables,
    read_configuration,
    read_variables,
)
from specs.document import blueprints
from specs.terraform_types import NotAType, mismatch, parse_type

TYPED = """
variable "name" {
  type        = string
  description = "The name prefix of every resource."
}

variable "replicas" {
  type    = map(number)
  default = { checkout = 3, "search" = 2 }
}

variable "network" {
  type = object({
    cidr  = string
    zones = optional(list(string), ["a"])
  })
  default = null
}

variable "password" {
  type        = string
  sensitive   = true
  description = <<-EOT
    Never shown.
    Not even here.
  EOT
}

variable "anything" {}
"""


def test_types_descriptions_and_defaults_come_from_the_configuration_itself() -> None:
    variables = read_configuration({"variables.tf": TYPED}).variables
    assert list(variables) == ["name", "replicas", "network", "password", "anything"]
    assert (variables["name"].required, variables["name"].description) == (
        True,
        "The name prefix of every resource.",
    )
    assert (str(variables["replicas"].type), variables["replicas"].default) == (
        "map(number)",
        {"checkout": 3, "search": 2},
    )
    assert (variables["network"].required, variables["network"].default) == (False, None)
    assert variables["password"].sensitive
    assert variables["password"].description == "Never shown.\nNot even here."
    assert str(variables["anything"].type) == "any"
    assert [item.line for item in variables.values()] == [2, 7, 12, 20, 29]


def test_json_configurations_are_read_as_well() -> None:
    text = '{"variable": {"zone": {"type": "list(string)", "default": ["a"]}}, "locals": {"x": 1}}'
    (zone,) = read_configuration({"main.tf.json": text}).variables.values()
    assert (str(zone.type), zone.default, zone.required) == ("list(string)", ["a"], False)


def test_what_was_read_is_the_same_after_it_was_kept() -> None:
    configuration = read_configuration({"variables.tf": TYPED})
    assert Configuration.from_json(configuration.as_json()) == configuration


@pytest.mark.parametrize("blueprint", blueprints(), ids=lambda item: item.name)
def test_the_quick_way_finds_the_same_variables_of_a_blueprint(blueprint: Any) -> None:
    assert list(read_variables(blueprint.files).variables) == list(blueprint.variables)


DECLARED = """variable "size" {
  type = number
}
variable "zone" {
  type    = string
  default = "a"
}
"""


def test_files_of_values_count_in_terraforms_own_order() -> None:
    files = {
        "main.tf": DECLARED,
        "terraform.tfvars": "size = 1\n",
        "b.auto.tfvars": "size = 3\nelsewhere = 1\n",
        "a.auto.tfvars.json": '{"size": 2, "zone": "b"}',
        "module/c.auto.tfvars": "size = 4\n",
        "prod.tfvars": "size = 5\n",
    }
    size, zone = read_configuration(files).variables.values()
    assert (size.default, size.required, size.given_in) == (3, False, "b.auto.tfvars")
    assert (zone.default, zone.given_in, zone.file) == ("b", "a.auto.tfvars.json", "main.tf")


def test_an_override_file_changes_a_declaration() -> None:
    override = 'variable "zone" {\n  default = "c"\n}\n'
    _, zone = read_configuration({"a_override.tf": override, "main.tf": DECLARED}).variables.values()
    assert (str(zone.type), zone.default, zone.file, zone.line) == ("string", "c", "main.tf", 4)


BAD_FILES = {
    "a file of values that does not parse": (
        {"main.tf": DECLARED, "terraform.tfvars": "\nsize = = 1\n"},
        ("terraform.tfvars", 2, "look at column"),
    ),
    "a file of values of another type": (
        {"main.tf": DECLARED, "x.auto.tfvars": 'size = "big"\n'},
        ("x.auto.tfvars", None, "expected number, got string"),
    ),
    "a brace that is missing": (
        {"main.tf": 'locals {\n  a = 1\n}\n\nresource "terraform_data" "x" {\n  input = 1\n'},
        ("main.tf", 6, "is not closed"),
    ),
    "an operator too many": ({"main.tf": "locals {\n  a = = 1\n}\n"}, ("main.tf", 2, "look at column")),
    "a quote that is missing": ({"main.tf": 'locals {\n  a = "x\n}\n'}, ("main.tf", 2, "quote")),
    "a directive without its end": (
        {"main.tf": 'locals {\n  a = "%{ if true }x"\n}\n'},
        ("main.tf", 2, "Unterminated template if"),
    ),
    "conditions without end": (
        {"main.tf": "locals {\n  a = " + "true ? 1 : " * 3_000 + "2\n}\n"},
        ("main.tf", 1, "nested"),
    ),
    "bad JSON": ({"main.tf.json": '{\n "variable": {},\n oops}'}, ("main.tf.json", 3, "Correct it")),
    "a NUL that is written as an escape": (
        {"v.tf": 'variable "v" {\n  default = "a\\u0000"\n}\n'},
        ("v.tf", 1, "not text"),
    ),
    "half a character in JSON": (
        {"v.tf.json": '{"variable": {"v": {"description": "\\ud800"}}}'},
        ("v.tf.json", 1, "not text"),
    ),
    "no number in a file of values": (
        {"main.tf": DECLARED, "x.auto.tfvars.json": '{"zone": [NaN]}'},
        ("x.auto.tfvars.json", 1, "nan is not a number"),
    ),
    "JSON without end": (
        {"main.tf.json": '{"locals": {"a": ' + "[" * 500 + "]" * 500 + "}}"},
        ("main.tf.json", 1, "nested too deeply"),
    ),
    "JSON that is no object": ({"main.tf.json": "[1]"}, ("main.tf.json", 1, "expected an object")),
    "a type that is none": (
        {"v.tf": 'variable "a" {}\nvariable "b" {\n  type = lst(string)\n}\n'},
        ("v.tf", 2, "'lst' is not a type"),
    ),
    "a variable twice": (
        {"a.tf": 'variable "a" {}\n', "b.tf": '\n\nvariable "a" {}\n'},
        ("b.tf", 3, "is declared in a.tf already"),
    ),
    "locals in a cycle": (
        {"main.tf": "locals {\n  one = 1\n  a = local.b\n  b = local.a\n}\n"},
        ("main.tf", 3, "local.a → local.b → local.a"),
    ),
    "a local of itself": ({"main.tf": 'locals {\n  a = "${local.a}x"\n}\n'}, ("main.tf", 2, "cycle")),
    "resources in a cycle over two files": (
        {
            "a.tf": '\nresource "terraform_data" "a" {\n  input = terraform_data.b.id\n}\n',
            "b.tf": 'resource "terraform_data" "b" {\n  input = [for x in [1] : terraform_data.a.id]\n}\n',
        },
        ("a.tf", 2, "terraform_data.a → terraform_data.b → terraform_data.a"),
    ),
    "data and a local in a cycle": (
        {"m.tf": 'data "http" "x" {\n  url = local.u\n}\nlocals {\n  u = data.http.x.url\n}\n'},
        ("m.tf", 5, "Remove one of the references"),
    ),
    "nesting without end": (
        {"m.tf": "locals {\n a = " + "[" * 4_000 + "]" * 4_000 + "\n}\n"},
        ("m.tf", 1, "nested"),
    ),
    "a default of another type": (
        {"v.tf": '\nvariable "n" {\n  type    = number\n  default = "many"\n}\n'},
        ("v.tf", 2, "the default of variable n: expected number, got string"),
    ),
    "a module that does not parse": (
        {"main.tf": 'module "m" { source = "./m" }\n', "m/main.tf": "locals {\n  a = = 1\n}\n"},
        ("m/main.tf", 2, "look at column"),
    ),
    "a module that is not there": (
        {"main.tf": '\nmodule "m" {\n  source = "./net"\n}\n', "net/README.md": "x"},
        ("main.tf", 2, "module 'm' is in './net', but that folder has no .tf file"),
    ),
    "a module that calls itself": (
        {"main.tf": 'module "m" { source = "./" }\n'},
        ("main.tf", 1, "calls itself again"),
    ),
    "modules without end": (
        {
            "main.tf": 'module "m" { source = "./m0" }\n',
            **{f"m{n}/main.tf": f'module "m" {{ source = "../m{n + 1}" }}\n' for n in range(400)},
        },
        ("m49/main.tf", 1, "nested more than 50 modules deep"),
    ),
    "modules in a cycle": (
        {
            "main.tf": 'module "a" { source = "./a" }\n',
            "a/main.tf": 'module "b" { source = "../b" }\n',
            "b/main.tf.json": '{\n "module": {\n "a": {"source": "../a"}}}',
        },
        ("b/main.tf.json", 3, "calls itself again"),
    ),
    "a file that is a folder as well": (
        {"main.tf": "", "m": "x", "m/a.tf": ""},
        ("m/a.tf", None, "lies in 'm', which is a file"),
    ),
    "a state": (
        {"main.tf": "", "a/terraform.tfstate": "{}"},
        ("a/terraform.tfstate", None, "Terraform itself"),
    ),
    "Terraform's folder": ({"main.tf": "", ".terraform/x": ""}, (".terraform/x", None, "Terraform itself")),
    "a file of Slipway's": (
        {"main.tf": "", "slipway.auto.tfvars.json": "{}"},
        ("slipway.auto.tfvars.json", None, "Slipway writes itself"),
    ),
    "no configuration": ({"modules/a/main.tf": "", "README.md": "x"}, (None, None, "ends in .tf")),
    "a name that leads out": ({"../main.tf": ""}, ("../main.tf", None, "Rename it")),
    "an absolute name": ({"/etc/main.tf": ""}, ("/etc/main.tf", None, "Rename it")),
    "a name with a control character": ({"a\nb.tf": ""}, ("a\nb.tf", None, "Rename it")),
}


@pytest.mark.parametrize(("files", "expected"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_configuration_is_refused_with_file_line_and_remedy(
    files: dict[str, str], expected: tuple[str | None, int | None, str]
) -> None:
    with pytest.raises(BadInput) as refused:
        read_configuration(files)
    file, line, words = expected
    assert words in str(refused.value)
    assert (refused.value.extra.get("file"), refused.value.extra.get("line")) == (file, line)
    assert refused.value.extra["field"] == "source.files"
    assert line is None or file is None or file in str(refused.value)


NO_CIRCLE = """
resource "terraform_data" "a" {
  input = self_link.x
  provisioner "local-exec" { command = "echo ${terraform_data.a.id} ${self.id}" }
}
module "m" { source = "./m"
  id = terraform_data.c.id }
resource "terraform_data" "c" { input = module.m.cidr }
locals {
  text   = "local.text and terraform_data.a are words"
  quoted = "${upper("local.quoted")} and $${local.quoted}"
  doc    = <<EOT
local.doc is a word, ${jsonencode({ "local.doc" = local.text })}
EOT
}
"""
MODULE = {"m/main.tf": 'variable "id" {}\noutput "cidr" { value = "x" }\n'}


def test_what_only_looks_like_a_cycle_is_none() -> None:
    read_configuration({"main.tf": NO_CIRCLE, **MODULE})


def test_a_reference_inside_quotes_inside_code_counts() -> None:
    text = 'locals {\n  a = "${upper("x ${local.b}")}"\n  b = { (local.a) = 1 }\n}\n'
    assert "local.a → local.b → local.a" in str(refusal_of({"main.tf": text}))


VALID = {
    "a number in a for": "[for x in local.y : 1]",
    "a number in a for in a for": "{ for x in local.y : x => [for z in x : 2] }",
    "a for in a text": '"${join(",", [for x in local.y : 3])}"',
    "spaces taken off": '"a ${~ local.y ~} b"',
    "a directive": '"%{~ for x in local.y ~}${x}%{ endfor }"',
    "a splat": "local.y[*].name",
    "a function of a provider": "provider::aws::arn_parse(local.y)",
    "a condition over lines": "(\n    local.y\n    ? 1 : 2\n  )",
}


@pytest.mark.parametrize("expression", VALID.values(), ids=VALID)
def test_what_terraform_takes_is_read_and_its_references_are_seen(expression: str) -> None:
    read_configuration({"main.tf": f"locals {{\n  a = {expression}\n  y = []\n}}\n"})
    cycle = refusal_of({"main.tf": f"locals {{\n  a = {expression}\n  y = [local.a]\n}}\n"})
    assert "local.a → local.y → local.a" in str(cycle)


def test_a_heredoc_is_the_lines_that_it_has() -> None:
    text = 'variable "v" {\n  default = <<-EOT\n    say "hi" \\d\n\n      in\n    EOT\n}\n'
    assert read_configuration({"v.tf": text}).variables["v"].default == 'say "hi" \\d\n\n  in\n'
    plain = text.replace("<<-", "<<").replace("    EOT", "EOT")
    assert read_configuration({"v.tf": plain}).variables["v"].default.startswith('    say "hi"')


def test_modules_elsewhere_are_left_to_terraform() -> None:
    sources = ("../beside", "hashicorp/consul/aws", "git::https://example.com/x.git", "./m", "./m/../m/")
    calls = "".join(f'module "m{n}" {{ source = "{source}" }}\n' for n, source in enumerate(sources))
    read_configuration({"main.tf": calls, **MODULE})


@pytest.mark.timeout(60)
def test_thousands_of_empty_lines_and_attributes_stop_nobody() -> None:
    """Parsing stays linear in a file's length: quadratic work would block the whole console."""
    text = "\n" * 400_000 + 'resource "terraform_data" "a" {}\nvariable "v" {\n}\n'
    assert _line_of(text, _declaration_pattern("terraform_data.a")) == 400_001
    assert _line_of(text, _declaration_pattern("local.none")) == 1
    assert _variable_lines(text) == {"v": 400_002}
    many = ", ".join(f"a{n}   =   string" for n in range(20_000))
    assert len(parse_type(f"object({{{many}}})").attributes) == 20_000


VALUES: list[tuple[str, Any, str | None]] = [
    ("string", "x", None),
    ("string", 3, None),
    ("string", ["x"], "expected string, got list"),
    ("number", 1.5, None),
    ("number", "7", None),
    ("number", "-1.5e3", None),
    ("number", "seven", "expected number, got string"),
    ("number", "1_000", "expected number, got string"),
    ("number", "nan", "expected number, got string"),
    ("number", " 7", "expected number, got string"),
    ("number", True, "expected number, got bool"),
    ("bool", "true", None),
    ("bool", "yes", "expected bool, got string"),
    ("list(string)", ["a", "b"], None),
    ("list(number)", [1, "b"], r"v\[1\]: expected number, got string"),
    ("set(string)", "a", r"expected set\(string\), got string"),
    ("map(number)", {"a": 1, "b": {}}, "v.b: expected number, got map"),
    ("object({a = string, b = optional(number)})", {"a": "x"}, None),
    ("object({a = string, b = optional(number)})", {"b": 1}, "v.a: is required"),
    ("object({a = object({b = list(bool)})})", {"a": {"b": [1]}}, r"v.a.b\[0\]: expected bool"),
    ("tuple([string, number])", ["a"], "expected 2 elements, got 1"),
    ("any", {"what": ["ever"]}, None),
    ("string", None, None),
]


@pytest.mark.parametrize(("kind", "value", "wrong"), VALUES)
def test_values_are_checked_as_terraform_types_them(kind: str, value: Any, wrong: str | None) -> None:
    configuration = read_configuration({"v.tf": f'\nvariable "v" {{\n  type = {kind}\n}}\n'})
    if wrong is None:
        check_variables(configuration, variables={"v": value})
        return
    with pytest.raises(BadInput, match=wrong) as refused:
        check_variables(configuration, variables={"v": value})
    assert refused.value.extra == {"field": "variables.v", "file": "v.tf", "line": 2}


def test_unknown_and_missing_variables_are_refused_by_name() -> None:
    configuration = read_configuration({"variables.tf": TYPED})
    with pytest.raises(BadInput, match=r"no variable 'nmae'\. Remove it, or declare it") as unknown:
        check_variables(configuration, variables={"nmae": "x"}, may_lack_values=True)
    assert unknown.value.extra["field"] == "variables.nmae"
    with pytest.raises(BadInput, match=r"'name' \(string\) has no value and no default") as missing:
        check_variables(configuration, variables={"anything": 1}, secret_names=frozenset({"password"}))
    assert missing.value.extra == {"field": "variables.name", "file": "variables.tf", "line": 2}
    check_variables(
        configuration, variables={"anything": 1, "name": "x"}, secret_names=frozenset({"password"})
    )


TYPES = st.recursive(
    st.sampled_from(["string", "number", "bool", "any"]),
    lambda inner: st.one_of(
        inner.map(lambda item: f"list({item})"),
        inner.map(lambda item: f"map( {item} )"),
        st.lists(inner, max_size=3).map(lambda all: f"tuple([{', '.join(all)}])"),
        st.lists(inner, max_size=3).map(
            lambda all: (
                "object({"
                + ", ".join(f"a{n} = {'optional(' * (n % 2)}{k}{')' * (n % 2)}" for n, k in enumerate(all))
                + "})"
            )
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(TYPES)
def test_a_type_reads_as_it_is_written(text: str) -> None:
    parsed = parse_type(text)
    assert parse_type(str(parsed)) == parsed
    assert mismatch(parsed, None, "v") is None


@settings(max_examples=100, deadline=None)
@given(st.text('(){}[],=:" strinumblaopjecx0.9', max_size=30))
def test_no_text_breaks_the_reader_of_types(text: str) -> None:
    with contextlib.suppress(NotAType):
        parse_type(text)


@settings(max_examples=60, deadline=None)
@given(st.text('variable resource"{}[]()=\n.,$<-#/*:?ax1_\\\0\ud7ff', max_size=60))
def test_no_text_breaks_the_reader_of_files(text: str) -> None:
    for name in ("main.tf", "main.tf.json"):
        refusal = refusal_of({name: text})
        assert refusal is None or (refusal.extra["file"] == name and refusal.extra["line"] >= 1)


def refusal_of(files: dict[str, str]) -> BadInput | None:
    try:
        read_configuration(files)
    except BadInput as refusal:
        return refusal
    return None
