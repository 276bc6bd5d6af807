"""A process of its own for each run with a user's congestion control, with limits of time and memory.

A hook of a user's C file may write where it may not, overflow the stack, divide by zero or never return. The core ends
the process around it then, with one line that names file, hook, flow and time (crates/congestion/src/guard); here that
is a child, so that the caller has an error and loses nothing else. A run without such a file has no child.

A child serves one call after the other; idle ones end with their parent, by the end of their input.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import queue
import re
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from elephan.core import native
from elephan.errors import InputError, RunError
from elephan.printable import one_line
from elephan.python_process import python_command

if TYPE_CHECKING:
    from elephan._native import RunResult, _Comparison

Progress = Callable[[int, int], Any]
"""Receives simulated ns and ns in all. It ends the call by an exception, or by True."""

FIELDS = (
    "metrics other_threads_cpu_s flows flow_groups links background short_flows manager extrapolation notes "
    "event_times_s windows cwnd_reductions flow_series link_series"
).split()
"""Of the core's result of a run."""

POLL_S = 0.1
"""Interval at which a caller is asked whether the call is to end, s."""

STOP_S = 2.0
"""Time that a child has to stop a call, s; one within a hook cannot."""

STACK_BYTES = 8 << 20
"""Stack of a child: a user may have none that ends."""

IDLE_MAX = 16
"""Children that are kept for further calls."""

_C_FILE = re.compile(r'"((?:[^"\\]|\\.)*\.c)"')


class ControlFault(InputError):
    """A hook of a user's congestion control faulted or did not return: file, hook, flow, time and reason."""


def fault_in(messages: str) -> str | None:
    """Return what a process that a fault of a hook has ended says of it on standard error; None for another end."""
    found = re.search(r"^error: (.*: hook \w+ (?:of .* )?at \d+\.\d+ s: .*)$", messages, re.MULTILINE)
    return None if found is None else one_line(found[1])


def simulate(
    spec_json: str, progress: Progress | None = None, progress_interval_s: float = 0.1, cores: int = 1
) -> RunResult:
    """Do what `native.simulate` does, in a child where the specification names a C file.

    Raises `ControlFault`, `RunError` when the child ends otherwise, and what `native.simulate` raises.
    """
    files = _files(spec_json)
    if not files:
        return native.simulate(spec_json, progress, progress_interval_s, cores)
    fields, cpu_s = _call(files, "simulate", (spec_json,), progress, (progress_interval_s, cores))
    # The caller counts the time of its own thread.
    fields["other_threads_cpu_s"] += cpu_s
    return cast("RunResult", SimpleNamespace(**fields))


def simulate_path_test(spec_json: str, test_json: str, at_json: str) -> str:
    """Do what `native.simulate_path_test` does, in a child where the specification names a C file. Raises likewise."""
    files = _files(spec_json)
    if not files:
        return native.simulate_path_test(spec_json, test_json, at_json)
    return cast(str, _call(files, "simulate_path_test", (spec_json, test_json, at_json))[0])


def replay_calls(name: str, values: dict[str, int], recording: bytes) -> _Comparison:
    """Do what `native.replay_calls` does, in a child for a C file. Raises likewise."""
    if not name.endswith(".c"):
        return native.replay_calls(name, values, recording)
    return cast("_Comparison", _call([name], "replay_calls", (name, values, recording))[0])


def synthetic_calls(name: str, values: dict[str, int], seed: int, count: int) -> bytes:
    """Do what `native.synthetic_calls` does, in a child for a C file. Raises likewise."""
    if not name.endswith(".c"):
        return native.synthetic_calls(name, values, seed, count)
    return cast(bytes, _call([name], "synthetic_calls", (name, values, seed, count))[0])


def _files(spec_json: str) -> list[str]:
    """Return the C files that a specification names."""
    # A search for three characters, as most specifications have none and some have megabytes.
    if '.c"' not in spec_json:
        return []
    return list(dict.fromkeys(json.loads(f'"{found}"') for found in _C_FILE.findall(spec_json)))


# The caller's side


def _call(
    files: list[str],
    function: str,
    arguments: tuple[Any, ...],
    progress: Progress | None = None,
    after: tuple[Any, ...] = (),
) -> tuple[Any, float]:
    """Return the result of a function of the core, and the CPU time that it took, s.

    With `progress`, that follows `arguments`, and `after` follows it.
    """
    process = _idle() or _Process()
    try:
        result = process.call(files, function, arguments, progress, after)
    except BaseException:
        process.end()
        raise
    _keep(process)
    return result


class _Process:
    """A child."""

    def __init__(self) -> None:
        """Start it, with this process's environment and folder."""
        self.place = _place()
        self._messages = os.memfd_create("elephan-control")
        """Its standard error."""
        # The path is handed over: an interpreter in a notebook may have it changed.
        code = f"import sys; sys.path[:] = {sys.path!r}; from elephan.control_process import serve; serve()"
        try:
            if not sys.executable:
                raise OSError(None, "this interpreter does not know its own program")
            self._child = subprocess.Popen(
                python_command("-c", code),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                # A Ctrl-C of the terminal is for the parent, which ends the call.
                process_group=0,
            )
        except OSError as error:
            os.close(self._messages)
            raise RunError(f"no process for a congestion control of the user's: {error.strerror}") from error

    def call(
        self,
        files: list[str],
        function: str,
        arguments: tuple[Any, ...],
        progress: Progress | None,
        after: tuple[Any, ...],
    ) -> tuple[Any, float]:
        """Have it call a function of the core. Raises what that raises, what `progress` raises, `ControlFault`."""
        last = (0, 0)

        def waiting() -> None:
            if progress is not None and progress(*last):
                raise native.Stopped("the progress callback asked the run to stop")

        try:
            self._send(("call", function, arguments, progress is not None, after))
            while True:
                kind, *content = pickle.loads(self._receive(waiting))
                if kind == "result":
                    return content[0], content[1]
                if kind == "error":
                    raise _exception(*content)
                last = (content[0], content[1])
                waiting()
        except (EOFError, BrokenPipeError):
            raise self._fault(files) from None
        except (OSError, ValueError, RuntimeError, MemoryError):
            raise
        except BaseException:
            self._stop()
            raise

    def is_fit(self) -> bool:
        """Return True if it can serve a call of this process as it is now."""
        return self.place == _place() and self._child.poll() is None

    def end(self) -> None:
        """End it at once."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._child.kill()
        self._child.wait()
        with suppress(OSError):
            os.close(self._messages)

    def _stop(self) -> None:
        """Have it end its call, so that files that it writes are removed; what it answers is dropped."""
        until_s = time.monotonic() + STOP_S

        def waiting() -> None:
            if time.monotonic() > until_s:
                raise TimeoutError

        with suppress(EOFError, OSError):
            self._send(("stop",))
            while pickle.loads(self._receive(waiting))[0] == "progress":
                waiting()

    def _send(self, message: tuple[Any, ...]) -> None:
        assert self._child.stdin is not None
        content = pickle.dumps(message, protocol=5)
        self._child.stdin.write(len(content).to_bytes(8, "little") + content)
        self._child.stdin.flush()

    def _receive(self, waiting: Callable[[], None]) -> bytes:
        """Return the next message; call `waiting` while there is none. Raises `EOFError` when the child has ended."""
        size = int.from_bytes(self._take(8, waiting), "little")
        return self._take(size, waiting)

    def _take(self, size: int, waiting: Callable[[], None]) -> bytes:
        assert self._child.stdout is not None
        handle = self._child.stdout.fileno()
        ready = select.poll()
        ready.register(handle, select.POLLIN)
        content = bytearray()
        while len(content) < size:
            if not ready.poll(POLL_S * 1000):
                waiting()
                continue
            part = os.read(handle, min(1 << 20, size - len(content)))
            if not part:
                raise EOFError
            content += part
        return bytes(content)

    def _fault(self, files: list[str]) -> Exception:
        """Return the reason for which it has ended."""
        code = self._child.wait()
        size = os.fstat(self._messages).st_size
        text = os.pread(self._messages, 1 << 16, max(0, size - (1 << 16))).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        said = fault_in(text)
        if said is not None:
            return ControlFault(said)
        named = ", ".join(files)
        if "memory allocation" in text or "MemoryError" in text:
            return ControlFault(f"{named}: the run with it needs more memory than this machine has free")
        if code < 0:
            how = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return ControlFault(f"{named}: the process that ran it was ended by {how}")
        last = f": {lines[-1]}" if lines else ""
        return RunError(f"{named}: the process that ran it ended with exit code {code}{last}")


_lock = threading.Lock()
_waiting: list[_Process] = []


def _place() -> tuple[Any, ...]:
    """Return what a child has of its parent: one that has another place or environment since then serves no more."""
    return os.getpid(), os.getcwd(), dict(os.environ)


def _idle() -> _Process | None:
    """Return a child that waits; end those that are of no use any more."""
    while True:
        with _lock:
            if not _waiting:
                return None
            process = _waiting.pop()
        if process.is_fit():
            return process
        # Another process's, after a fork, is left alone.
        if process.place[0] == os.getpid():
            process.end()


def _keep(process: _Process) -> None:
    with _lock:
        if len(_waiting) < IDLE_MAX:
            _waiting.append(process)
            return
    process.end()


@atexit.register
def _end_all() -> None:
    while process := _idle():
        process.end()


def _exception(name: str, arguments: tuple[Any, ...], problems: Any) -> BaseException:
    """Return an exception of the core's as if it had been raised here."""
    if name in ("CompileError", "NoClang", "Stopped"):
        raised: BaseException = getattr(native, name)(*arguments)
    else:
        raised = {"OSError": OSError, "ValueError": ValueError, "MemoryError": MemoryError}.get(name, RuntimeError)(
            *arguments
        )
    if problems is not None:
        raised.problems = problems  # type: ignore[attr-defined]
    return raised


# The child's side


def serve() -> None:
    """Serve calls of the parent, by standard input and output, until it closes them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _bound()
    replies = os.fdopen(os.dup(1), "wb")
    # A library's print is no reply.
    os.dup2(2, 1)
    calls: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_read_calls, args=(calls, stop), daemon=True).start()

    def send(*message: Any) -> None:
        content = pickle.dumps(message, protocol=5)
        try:
            replies.write(len(content).to_bytes(8, "little") + content)
            replies.flush()
        except BrokenPipeError:
            os._exit(0)

    def progress(now_ns: int, end_ns: int) -> bool:
        send("progress", now_ns, end_ns)
        return stop.is_set()

    while True:
        function, arguments, has_progress, after = calls.get()
        stop.clear()
        all_arguments = (*arguments, progress if has_progress else None, *after) if after else arguments
        began_s = time.thread_time()
        try:
            result = getattr(native, function)(*all_arguments)
            if function == "simulate":
                result = {name: getattr(result, name) for name in FIELDS}
        except Exception as error:
            kind = "OSError" if isinstance(error, OSError) else type(error).__name__
            send("error", kind, error.args, getattr(error, "problems", None))
        else:
            send("result", result, time.thread_time() - began_s)
        result = None


def _read_calls(calls: queue.SimpleQueue[tuple[Any, ...]], stop: threading.Event) -> None:
    requests = sys.stdin.buffer
    while size := requests.read(8):
        kind, *content = pickle.loads(requests.read(int.from_bytes(size, "little")))
        if kind == "stop":
            stop.set()
        else:
            calls.put(tuple(content))
    # The parent has ended, or needs no more.
    os._exit(0)


def _bound() -> None:
    """Limit this process: no core dump, a stack that ends, no more memory than is free."""
    free = 0
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as lines:
        free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    bounds = {resource.RLIMIT_CORE: 0, resource.RLIMIT_STACK: STACK_BYTES}
    if free:
        with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as pages:
            bounds[resource.RLIMIT_AS] = free + int(pages.read().split()[0]) * resource.getpagesize()
    for kind, most in bounds.items():
        soft, hard = resource.getrlimit(kind)
        known = [bound for bound in (soft, hard, most) if bound != resource.RLIM_INFINITY]
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (min(known), hard))


__all__ = ["ControlFault", "fault_in", "replay_calls", "serve", "simulate", "simulate_path_test", "synthetic_calls"]
