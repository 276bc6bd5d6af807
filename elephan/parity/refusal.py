"""The kernel's refusal of a congestion control that is compared, in words."""

from __future__ import annotations

from elephan.errors import InputError


def refused(file: str, error: Exception) -> InputError:
    """Return what is raised for a `native.BpfError` of a congestion control's object."""
    if getattr(error, "kind", "") != "load":
        return InputError(f"{file}: {error}")
    return InputError(
        f"{file}: {error}; `elephan cc check` says why, unless it is the recording that the verifier finds too large"
    )
