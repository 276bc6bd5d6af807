"""A program that measures says in one line what it lacks."""

from __future__ import annotations

import pytest

from elephan.errors import InputError, RunError
from elephan.path import testbed
from evaluation.requirements import exit_code, require


def test_all_that_lacks_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testbed, "missing", lambda: "needs root, to make network namespaces")
    with pytest.raises(InputError) as told:
        require({"sh": "dash", "no-such-tool": "some-package"}, path=True)
    assert str(told.value) == "needs root, to make network namespaces; needs no-such-tool (Debian package some-package)"


def test_without_a_lack_nothing_is_said() -> None:
    require({"sh": "dash"})


@pytest.mark.parametrize(("error", "code"), [(InputError("needs root"), 2), (RunError("it ended"), 1)])
def test_an_error_is_one_line_and_an_exit_code(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> None:
        raise error

    assert exit_code("evaluation.some", main) == code
    assert capsys.readouterr().err == f"evaluation.some: {error}\n"
    assert exit_code("evaluation.some", lambda: None) == 0
