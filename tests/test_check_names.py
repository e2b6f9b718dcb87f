"""A class name has one meaning in the package, and no class holds more than a dozen attributes."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_names.py"


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_names", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def read(check, tmp_path):
    def read(**modules):
        for name, text in modules.items():
            file = tmp_path / f"{name.replace('__', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        return list(check.read_classes(tmp_path))

    return read


def test_the_repository_keeps_the_rules(check, capsys):
    assert check.main() == 0, capsys.readouterr().err


def test_a_name_that_two_modules_define_is_a_fault(check, read):
    classes = read(agent__a="class Zone: pass", client__b="class Zone: pass")
    [fault] = check.find_collisions(classes, {})
    assert fault.startswith("Zone is defined in agent.a, client.b")


def test_private_names_may_be_used_again(check, read):
    assert not list(check.find_collisions(read(a="class _Zone: pass", b="class _Zone: pass"), {}))


def test_a_shared_name_is_defined_once_in_each_package(check, read):
    classes = read(agent__a="class Zone: pass", client__b="class Zone: pass")
    assert not list(check.find_collisions(classes, {"Zone": "of both"}))
    classes = read(agent__c="class Zone: pass")
    [fault] = check.find_collisions(classes, {"Zone": "of both"})
    assert "agent.a, agent.c, client.b" in fault


def test_an_exception_that_is_not_needed_is_a_fault(check, read):
    classes = read(a="class Zone: pass")
    assert list(check.find_collisions(classes, {"Zone": "once shared"}))
    assert list(check.find_large(classes, {"a.Zone": (20, "once large")}))
    assert list(check.find_large(classes, {"b.Gone": (20, "once there")}))


def test_attributes_are_the_fields_of_the_body_and_what_methods_assign(read):
    [zone] = read(
        a="class Zone:\n"
        "    limit: ClassVar[int] = 3\n"
        "    name: str\n"
        "    def __init__(self):\n"
        "        self.one, (self.two, other.three) = 1, (2, 3)\n"
        "        self.four: int = self.five\n"
        "        self.name = ''\n"
    )
    assert zone.attributes == {"name", "one", "two", "four"}


def test_a_class_may_have_twelve_attributes_or_as_many_as_its_exception_allows(check, read):
    fields = "".join(f"    f{number}: int\n" for number in range(13))
    [fault] = check.find_large(read(a=f"class Zone:\n{fields}"), {})
    assert fault.startswith("a.Zone has 13 instance attributes, 12 are allowed")
    assert not list(check.find_large(read(), {"a.Zone": (13, "a table")}))
    assert not list(check.find_large(read(a=f"class Zone:\n{fields[: fields.rindex('    ')]}"), {}))
