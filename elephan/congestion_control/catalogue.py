"""The available congestion controls, with their parameters, as the C files describe them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan.core import native
from elephan.errors import InputError
from elephan.run_spec.types import TransportSpec

if TYPE_CHECKING:
    from elephan._native import _CongestionControl, _Problem


BY_VARIANT = -1
"""CC_BY_VARIANT of definitions.h."""


class CannotCompile(InputError):
    """A user's own file is no congestion control: the text, and `problems` place by place."""

    def __init__(self, text: str, problems: list[_Problem]) -> None:
        """Take over the core's words."""
        super().__init__(text)
        self.problems = problems


@dataclass(frozen=True)
class Parameter:
    """A named parameter of a congestion control. A value as text is the integer divided by `scale`."""

    name: str
    unit: str
    default: int
    minimum: int
    maximum: int
    scale: int
    doc: str

    def text(self, value: int) -> str:
        """Return an integer value as a scenario writes it: 128 of scale 1024 as "1/8", a switch as "on", a choice."""
        if self.is_by_variant and value == self.default:
            return "by variant"
        if 0 <= value < len(self.choices):
            return self.choices[value]
        if self.is_switch:
            return "on" if value else "off"
        if self.scale == 1:
            return str(value)
        fraction = Fraction(value, self.scale)
        # A short fraction is clearer than a decimal ("1/8"); a long one is not ("717/1024" is 0.7 as CUBIC's beta).
        short = fraction.denominator <= 16 and abs(fraction.numerator) <= 16
        return str(fraction) if short else f"{float(fraction):.4g}"

    def value(self, value: int) -> bool | int | float | str:
        """Return an integer value as data: 128 of scale 1024 as 0.125, a switch as True, a choice by its name."""
        if 0 <= value < len(self.choices):
            return self.choices[value]
        if self.is_switch:
            return bool(value)
        return value if self.scale == 1 else value / self.scale

    @property
    def is_by_variant(self) -> bool:
        """Return True if the control's variant decides until a value is given (CC_BY_VARIANT of definitions.h)."""
        return self.default == BY_VARIANT and self.default < self.minimum

    @property
    def is_switch(self) -> bool:
        """Return True if it is on or off."""
        return self.scale == 1 and (self.minimum, self.maximum) == (0, 1) and not self.choices

    @property
    def choices(self) -> tuple[str, ...]:
        """The names of its values 0, 1, ...; none for a number. A unit such as "off|slow|fast" lists them."""
        return tuple(self.unit.split("|")) if "|" in self.unit else ()

    @property
    def range_text(self) -> str:
        """The values that it takes: "on, off", "1 .. 64", "1/16 .. 1/2", "off, slow, fast"."""
        if self.choices:
            return ", ".join(self.choices)
        if self.is_switch:
            return "on, off"
        return f"{self.text(self.minimum)} .. {self.text(self.maximum)}"

    @property
    def unit_text(self) -> str:
        """The unit to show behind a number, or nothing."""
        return "" if self.unit in ("1", "bool") or self.choices else self.unit


@dataclass(frozen=True)
class CongestionControl:
    """A congestion control."""

    name: str
    summary: str
    source: str
    parameters: tuple[Parameter, ...]
    hooks: tuple[str, ...]
    """Hooks of Linux's tcp_congestion_ops that it has."""
    code: str
    """Its C file."""
    path: str | None = None
    """The file's path; None for a built-in one."""
    warnings: tuple[_Problem, ...] = ()
    """Warnings of the compiler, and divisions that may be by zero: `line`, `what`, `code`, `hint`."""

    @property
    def kernel(self) -> str:
        """The kernels in which it can run, as its file says, or else as its hooks need."""
        from elephan.congestion_control import header

        said = header.said_of(self.code, "Kernel").rstrip(".")
        if said:
            return said
        # bpf/env.h: struct_ops came with 5.6; with 6.10 cong_control took the arguments that it has here.
        least = "6.10" if "cong_control" in self.hooks else "5.6"
        return f"by its hooks as BPF struct_ops, Linux {least} and later; `elephan cc check` tries it"

    @property
    def as_linux(self) -> dict[str, int]:
        """The parameters that make it what Linux has under its name: a variant "linux", else nothing."""
        return {
            item.name: item.choices.index("linux")
            for item in self.parameters
            if item.name == "variant" and "linux" in item.choices
        }

    @classmethod
    def from_core(cls, entry: _CongestionControl, path: str | None = None) -> CongestionControl:
        """Take over what the core says."""
        return cls(
            name=entry["name"],
            summary=entry["summary"],
            source=entry["source"],
            parameters=tuple(
                Parameter(
                    name=item["name"],
                    unit=item["unit"],
                    default=item["default"],
                    minimum=item["min"],
                    maximum=item["max"],
                    scale=item["scale"],
                    doc=item["doc"],
                )
                for item in entry["params"]
            ),
            hooks=tuple(entry["hooks"]),
            code=entry["code"],
            path=path,
            warnings=tuple(entry.get("warnings", ())),
        )


@cache
def congestion_controls() -> tuple[CongestionControl, ...]:
    """Return all built-in congestion controls, by name."""
    return tuple(
        sorted((CongestionControl.from_core(entry) for entry in native.congestion_controls()), key=lambda cc: cc.name)
    )


def find(name: str) -> CongestionControl:
    """Return the built-in congestion control `name`, or the one compiled from a `.c` file. Raises `InputError`."""
    if name.endswith(".c"):
        return compiled(name)
    for cc in congestion_controls():
        if cc.name == name:
            return cc
    names = ", ".join(cc.name for cc in congestion_controls())
    raise InputError(f"no congestion control {name!r}; there are {names}, or the path of a .c file")


def compiled(path: str) -> CongestionControl:
    """Compile a user's congestion control and return what it says of itself. Raises `InputError`."""
    if not Path(path).exists():
        raise InputError(f"no file {path}")
    try:
        return CongestionControl.from_core(native.compile_cc(path), path)
    except native.CompileError as error:
        raise CannotCompile(str(error), error.problems) from error


def compiled_once(path: Path) -> CongestionControl:
    """Return what `compiled` does, without compiling the same contents again. Raises `InputError`, `OSError`."""
    status = path.stat()
    return _compiled_once(str(path), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _compiled_once(path: str, _mtime_ns: int, _size: int) -> CongestionControl:
    return compiled(path)


def label_of(cc: TransportSpec) -> str:
    """Return a specified congestion control as one reads it: "storage_friendly(congestion_avoidance=off,
    reduction=1/2)"."""
    declared = _declared(cc)
    values = ", ".join(
        f"{name}={declared[name].text(value) if name in declared else value}"
        for name, value in sorted(cc["parameters"].items())
    )
    name = Path(cc["congestion_control"]).name
    return f"{name}({values})" if values else name


def parts_of(cc: TransportSpec) -> dict[str, Any]:
    """Return a specified congestion control as data: its `name`, and the values of the `parameters` that the scenario
    sets."""
    declared = _declared(cc)
    parameters = {
        name: declared[name].value(value) if name in declared else value
        for name, value in sorted(cc["parameters"].items())
    }
    return {"name": Path(cc["congestion_control"]).name, "parameters": parameters}


def _declared(cc: TransportSpec) -> dict[str, Parameter]:
    """Return the parameters that a congestion control has, where the scenario sets any."""
    if not cc["parameters"]:
        return {}
    congestion = cc["congestion_control"]
    described = compiled_once(Path(congestion)) if congestion.endswith(".c") else find(congestion)
    return {item.name: item for item in described.parameters}
