"""Objects that ask for the kernel's configuration, where it is kept elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.kernel.test_kernel import ROOT
from tests.kernel.test_objects import compiled


def test_an_object_that_asks_is_taken_without_any_configuration(kernel: None) -> None:
    # As in a container: of /proc there is what belongs to processes, and no /boot.
    command = (
        "mount -t proc -o subset=pid none /proc && mount -t tmpfs none /boot && "
        "exec $PYTHON -m elephan.congestion_control.load"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command],
        input=compiled("cubic"),
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
    )
    answer = json.loads(done.stdout)
    assert answer["passed"], (answer, done.stderr)
