"""Print the processor, the digest of the BPF objects in the native module, and the module's file."""

import hashlib
import platform

from elephan import _native as native


def digest() -> str:
    """Return the digest of all objects, in the order of their names."""
    names = sorted(control["name"] for control in native.congestion_controls())
    return hashlib.sha256(b"".join(native.builtin_object(name) or b"" for name in names)).hexdigest()


if __name__ == "__main__":
    print(platform.machine(), digest(), native.__file__)
