"""Every rule of a part that is done has a test that names it."""

from __future__ import annotations

from .extensions import load

rules = load("rules")
PROOFS = rules.find_proofs(rules.test_files())
RULES = rules.read_rules()


def test_a_rule_that_is_done_has_a_test():
    missing = [f"{rule.id} {rule.title}" for rule in RULES if rule.done and rule.id not in PROOFS]
    assert missing == []


def test_tests_name_only_rules_that_exist():
    known = {rule.id for rule in RULES}
    assert {name: places for name, places in PROOFS.items() if name not in known} == {}


def test_a_rule_is_found_where_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(rules, "ROOT", tmp_path)
    path = tmp_path / "test_x.py"
    path.write_text(
        '"""R-1 of the file."""\n'
        "# R-2\n"
        "@decorated\n"
        "def test_a():\n"
        '    """R-3"""\n'
        "\n"
        "\n"
        "async def test_b():\n"
        "    assert 1  # A-META-10, R-29a\n"
        "\n"
        "\n"
        "class TestC:\n"
        "    def test_c(self):\n"
        "        ...  # O-4\n",
        encoding="utf-8",
    )
    assert rules.find_proofs([path]) == {
        "R-1": ["test_x.py"],
        "R-2": ["test_x.py::test_a"],
        "R-3": ["test_x.py::test_a"],
        "A-META-10": ["test_x.py::test_b"],
        "R-29a": ["test_x.py::test_b"],
        "O-4": ["test_x.py::test_c"],
    }
