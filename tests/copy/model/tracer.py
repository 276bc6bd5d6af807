"""System calls of a command, seen before they run: to end it there, to make one fail, and to judge their order.

A filter by seccomp(2) stops the process at the calls that matter alone; ptrace(2) holds it meanwhile. x86-64 only.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import signal
import socket
import struct
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.copy.model import command
from tests.copy.model.command import Result

CALLS = {
    "write": 1, "pwrite64": 18, "writev": 20, "pwritev": 296, "sendfile": 40, "splice": 275, "copy_file_range": 326,
    "ftruncate": 77, "truncate": 76, "fallocate": 285, "ioctl": 16,
    "rename": 82, "renameat": 264, "renameat2": 316, "link": 86, "linkat": 265, "unlink": 87, "unlinkat": 263,
    "rmdir": 84, "mkdir": 83, "mkdirat": 258, "symlink": 88, "symlinkat": 266, "mknod": 133, "mknodat": 259,
    "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94,
    "fchownat": 260, "utimensat": 280, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197,
    "lremovexattr": 198, "fremovexattr": 199, "fsync": 74, "fdatasync": 75, "syncfs": 306, "sync": 162,
    "openat": 257, "openat2": 437, "pread64": 17, "statx": 332, "newfstatat": 262, "fstat": 5,
}  # fmt: skip
"""Numbers on x86-64 (asm/unistd_64.h)."""
READS = frozenset({"openat", "openat2", "pread64", "statx", "newfstatat", "fstat"})
"""Those that change nothing, which only who asks for them sees."""
CHANGING = frozenset(CALLS) - READS
FICLONE = 0x40049409

PTRACE_CONT, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_SYSCALL = 7, 12, 13, 24
PTRACE_GETEVENTMSG, PTRACE_SEIZE = 0x4201, 0x4206
HOLD = "ELEPHAN_MODEL_HOLD"
"""Variable with the socket at which processes of the second host wait to be traced (hold.c)."""
AGENT = "agent-"
"""Beginning of the name of an agent's process."""
OPTIONS = 1 | 2 | 4 | 8 | 0x80 | 0x100000
"""TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACESECCOMP, EXITKILL."""
EVENT_SECCOMP, EVENT_STOP = 7, 128
BEGINS = frozenset({1, 2, 3})
"""Events of fork(2), vfork(2) and clone(2)."""
WALL = 0x40000000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
RET_TRACE, RET_ALLOW = 0x7FF00000, 0x7FFF0000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def missing() -> str | None:
    """Return why no process can be traced here; None: it can."""
    if platform.machine() != "x86_64":
        return f"system calls are traced on x86-64 alone, this is {platform.machine()}"
    return None


class _Registers(ctypes.Structure):
    """user_regs_struct (sys/user.h)."""

    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in (
            "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
            "ds es fs gs"
        ).split()
    ]


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction))]


@dataclass
class Call:
    """A system call that is about to run, or has run."""

    name: str
    process: int
    thread: int
    side: str = "here"
    """"here": the command itself. "there": its agent at the second host. "": a process that either started."""
    _registers: _Registers | None = None

    @property
    def registers(self) -> _Registers:
        """The thread's registers."""
        if self._registers is None:
            self._registers = _Registers()
            _ptrace(PTRACE_GETREGS, self.thread, 0, ctypes.addressof(self._registers))
        return self._registers

    @property
    def arguments(self) -> tuple[int, ...]:
        """Its arguments."""
        found = self.registers
        return found.rdi, found.rsi, found.rdx, found.r10, found.r8, found.r9

    def descriptor(self, number: int) -> str:
        """Return the path that a descriptor has in /proc, for the tracer."""
        number = ctypes.c_int(number & 0xFFFFFFFF).value
        return f"/proc/{self.process}/cwd" if number == -100 else f"/proc/{self.process}/fd/{number}"

    def file(self, number: int) -> str:
        """Return the path that a descriptor leads to, as the kernel shows it."""
        try:
            return os.readlink(self.descriptor(number))
        except OSError:
            return ""

    def text(self, address: int) -> bytes:
        """Return a string of the process."""
        return self.memory(address, 4096).split(b"\0", 1)[0]

    def memory(self, address: int, count: int) -> bytes:
        """Return bytes of the process, up to the end of what is mapped."""
        with open(f"/proc/{self.process}/mem", "rb", buffering=0) as memory:
            found = b""
            while len(found) < count:
                # A page may be the last one that is mapped.
                step = min(count - len(found), 4096 - (address + len(found)) % 4096)
                try:
                    memory.seek(address + len(found))
                    piece = memory.read(step)
                except OSError:
                    break
                found += piece
                if b"\0" in piece or not piece:
                    break
            return found

    def set_memory(self, address: int, data: bytes) -> None:
        """Change bytes of the process."""
        with open(f"/proc/{self.process}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(data)

    def path(self, folder: int, address: int) -> str:
        """Return a path of the process, for the tracer."""
        name = os.fsdecode(self.text(address))
        if name.startswith("/proc/self/"):
            return f"/proc/{self.process}/{name.removeprefix('/proc/self/')}"
        return name if name.startswith("/") else f"{self.descriptor(folder)}/{name}"


@dataclass(frozen=True)
class Skip:
    """The call does not run, and gives this: 0, or an error below it."""

    result: int


class Kill:
    """The process ends by SIGKILL before the call."""


class Leave:
    """The call runs, and is seen again at its end."""


Act = Skip | Kill | Leave | None


class Observer:
    """Sees the system calls of a process."""

    wants: frozenset[str] = CHANGING

    def enter(self, call: Call) -> Act:
        """See a call before it runs."""

    def leave(self, call: Call, result: int) -> None:
        """See its result, after `Leave`."""


def is_counted(call: Call) -> bool:
    """Return True for a call that changes files: sockets, pipes and the output of the process do not count."""
    if call.name in READS:
        return False
    if call.name in ("write", "writev", "pwritev"):
        path = call.file(call.arguments[0])
        return path.startswith("/") and not path.startswith(("/memfd:", "/dev/"))
    return not (call.name == "ioctl" and call.arguments[1] != FICLONE)


@dataclass
class Counter(Observer):
    """Counts the calls that change files, and ends the process or lets one fail before call number `at`.

    `only`: of this name alone are counted.
    """

    at: int
    error: str | None = None
    """Name of the error that the call gives; None: the process is killed."""
    side: str = "here"
    """Side whose calls are counted (`Call.side`)."""
    count: int = 0
    did: str = ""
    """The call at which it was done."""
    only: str = ""

    @classmethod
    def before(cls, at: int | list[Any], error: str | None = None, side: str = "here") -> Counter:
        """Return one for a number, or for a name and the number of its call."""
        return cls(at, error, side) if isinstance(at, int) else cls(int(at[1]), error, side, only=str(at[0]))

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        if self.did or call.side != self.side or not is_counted(call) or self.only not in ("", call.name):
            return None
        self.count += 1
        if self.count < self.at:
            return None
        self.did = call.name
        return Kill() if self.error is None else Skip(-getattr(errno, self.error))


@dataclass
class At(Observer):
    """Calls `act` before call number `at` that changes files, of either side."""

    at: int
    act: Callable[[], None]
    count: int = 0
    did: bool = False

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        if not self.did and call.side and is_counted(call):
            self.count += 1
            if self.count >= self.at:
                self.did = True
                self.act()
        return None


@dataclass
class Interruption(Observer):
    """Calls `act` with the path before read number `at` of a file below `scope`; the thread that reads is stopped."""

    at: int
    scope: str
    act: Callable[[str], None]
    count: int = 0
    did: bool = False
    wants: frozenset[str] = frozenset({"pread64", "openat2"})

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        path = call.file(call.arguments[0])
        if not self.did and path.startswith(self.scope) and "/.elephan-copy" not in path:
            self.count += 1
            if self.count >= self.at:
                self.did = True
                self.act(path)
        return None


@dataclass
class Damage(Observer):
    """Changes a byte on the disk behind write number `at` of a part."""

    at: int
    scope: str
    count: int = 0
    did: bool = False
    wants: frozenset[str] = frozenset({"pwrite64"})

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        if self.did or ".elephan-copy/" not in (path := call.file(call.arguments[0])) or not path.endswith(".part"):
            return None
        self.count += 1
        return Leave() if self.count >= self.at else None

    def leave(self, call: Call, result: int) -> None:
        """See `Observer`."""
        if result <= 0 or self.did:
            return
        self.did = True
        at = call.arguments[3] + result // 2
        handle = os.open(call.descriptor(call.arguments[0]), os.O_RDWR)
        try:
            byte = os.pread(handle, 1, at)
            os.pwrite(handle, bytes([byte[0] ^ 0x40]), at)
        finally:
            os.close(handle)


class Hold:
    """A socket at which processes of the second host wait until they are traced."""

    def __init__(self, program: bytes, taken: Callable[[int], bool]) -> None:
        """`program`: the filter that each gets. `taken`: called with its id; has it traced."""
        self.program = program
        self.taken = taken
        self.path = f"{tempfile.gettempdir()}/elephan-hold-{os.getpid()}-{id(self):x}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o777)
        self.listener.listen(64)
        self.listener.setblocking(False)
        # A tracer waits by waitpid(2) alone, which this signal interrupts.
        self.previous = signal.signal(signal.SIGIO, self._take)
        fcntl.fcntl(self.listener, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self.listener, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)

    def _take(self, *_: object) -> None:
        while True:
            try:
                connection, _address = self.listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                process, _user, _group = struct.unpack(
                    "iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                )
                if self.taken(process):
                    connection.sendall(struct.pack("H", len(self.program) // 8) + self.program)

    def close(self) -> None:
        """Let further processes run untraced."""
        self.listener.close()
        signal.signal(signal.SIGIO, self.previous)
        with suppress(FileNotFoundError):
            os.unlink(self.path)


@dataclass
class Traced:
    """A process that is traced to its end, with its children."""

    observers: list[Observer]
    has_remote: bool = False
    """Its agents at the second host are traced, too."""
    is_hasty: bool = False
    """Its end is the end of all that it has started: as if its machine had lost power."""
    pending: dict[int, Call] = field(default_factory=dict)
    """Calls that run, by thread, of which the end is wanted."""
    tasks: dict[int, int] = field(default_factory=dict)
    """Threads that are traced, with their processes; 0: not looked up yet."""
    sides: dict[int, str] = field(default_factory=dict)
    """Sides of processes, once they are known."""

    def run(
        self, commands: list[list[bytes]], state: Path, user: int | None = None, limit_s: float = command.TIME_LIMIT_S
    ) -> Result:
        """Run commands as `command.start` does, under the eyes of the observers."""
        names = sorted(set().union(*(observer.wants for observer in self.observers)))
        program = _program(names)
        hold = Hold(bytes(program), self._seized) if self.has_remote else None
        gate, open_gate = os.pipe()

        def prepare() -> None:
            if hold is not None:
                os.environ[HOLD] = hold.path
                hold.listener.close()
            os.close(open_gate)
            os.read(gate, 1)
            os.close(gate)
            _install(program)

        child = command.start(commands, state, user, prepare)
        os.close(gate)
        self.sides[child.pid] = "here"
        self.tasks[child.pid] = child.pid
        _ptrace(PTRACE_SEIZE, child.pid, 0, OPTIONS)
        os.write(open_gate, b"x")
        os.close(open_gate)
        hung = False

        def end(*_: object) -> None:
            nonlocal hung
            hung = True
            self.kill()

        previous = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            status = self._until_end(child.pid, names)
            if self.is_hasty:
                self.kill()
            if hold is not None:
                hold.close()
                hold = None
            self._until_all_ended(names)
        finally:
            if hold is not None:
                hold.close()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
        result = child.result(status)
        return Result(-signal.SIGALRM, result.output + "\nthe command hangs") if hung else result

    def _seized(self, process: int) -> bool:
        """Trace a process of the second host."""
        if not _ptrace(PTRACE_SEIZE, process, 0, OPTIONS):
            return False
        self.tasks[process] = process
        self.sides[process] = "there"
        return True

    def kill(self) -> None:
        """End all that is traced."""
        for task in list(self.tasks):
            with suppress(ProcessLookupError):
                os.kill(task, signal.SIGKILL)

    def _until_end(self, process: int, names: list[str]) -> int:
        while True:
            thread, status = os.waitpid(-1, WALL)
            if self._seen(thread, status, names) and thread == process:
                return status

    def _until_all_ended(self, names: list[str]) -> None:
        """Serve what the command has started: a filter without a tracer lets its calls fail."""
        while self.tasks:
            for task in list(self.tasks):
                if not os.path.exists(f"/proc/{task}"):
                    del self.tasks[task]
            if not self.tasks:
                return
            try:
                thread, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                return
            self._seen(thread, status, names)

    def _seen(self, thread: int, status: int, names: list[str]) -> bool:
        """Handle a change of a thread; return True if it has ended."""
        if not os.WIFSTOPPED(status):
            if self.tasks.pop(thread, None) is None:
                # Another child of this process, whose end its `Child` wants.
                command.ENDED[thread] = status
            self.pending.pop(thread, None)
            self.sides.pop(thread, None)
            return True
        self.tasks.setdefault(thread, 0)
        event, signal_number = status >> 16, os.WSTOPSIG(status)
        if event == EVENT_SECCOMP:
            self._enter(thread, names)
        elif signal_number == signal.SIGTRAP | 0x80:
            self._leave(thread)
        elif event:
            if event in BEGINS and (begun := _message(thread)):
                self.tasks.setdefault(begun, 0)
            # A thread that begins or stops.
            _continue(thread)
        else:
            _continue(thread, signal_number)
        return False

    def _process_of(self, thread: int) -> int:
        if not self.tasks[thread]:
            with suppress(OSError), open(f"/proc/{thread}/status") as lines:
                self.tasks[thread] = next(int(line.split()[1]) for line in lines if line.startswith("Tgid:"))
        return self.tasks[thread]

    def _side_of(self, process: int) -> str:
        side = self.sides.get(process, "")
        if side == "there":
            # Its shell runs the first steps, and becomes the agent.
            with suppress(OSError), open(f"/proc/{process}/comm") as name:
                return side if name.read().startswith(AGENT) else ""
        return side

    def _enter(self, thread: int, names: list[str]) -> None:
        number = _message(thread)
        if number is None:
            return
        process = self._process_of(thread)
        call = Call(names[number], process, thread, self._side_of(process))
        act: Act = None
        for observer in self.observers:
            if call.name in observer.wants:
                chosen = observer.enter(call)
                act = chosen if act is None or isinstance(chosen, Kill | Skip) else act
                if isinstance(chosen, Kill):
                    break
        if isinstance(act, Kill):
            os.kill(process, signal.SIGKILL)
            return
        if isinstance(act, Skip):
            registers = call.registers
            # No system call: the kernel leaves the result alone (seccomp(2), SECCOMP_RET_TRACE).
            registers.orig_rax = 0xFFFFFFFFFFFFFFFF
            registers.rax = act.result & 0xFFFFFFFFFFFFFFFF
            _ptrace(PTRACE_SETREGS, thread, 0, ctypes.addressof(registers))
        if isinstance(act, Leave):
            self.pending[thread] = call
            _ptrace(PTRACE_SYSCALL, thread, 0, 0)
        else:
            _continue(thread)

    def _leave(self, thread: int) -> None:
        call = self.pending.pop(thread, None)
        if call is not None:
            end = Call(call.name, call.process, thread, call.side)
            result = ctypes.c_long(end.registers.rax).value
            for observer in self.observers:
                if call.name in observer.wants:
                    observer.leave(call, result)
        _continue(thread)


def _message(thread: int) -> int | None:
    """Return the message of an event; None: the thread has ended."""
    message = ctypes.c_ulong()
    return message.value if _ptrace(PTRACE_GETEVENTMSG, thread, 0, ctypes.addressof(message)) else None


def _continue(thread: int, signal_number: int = 0) -> None:
    _ptrace(PTRACE_CONT, thread, 0, signal_number)


def _ptrace(request: int, thread: int, address: int, data: int) -> bool:
    """Return False for a thread that has ended."""
    if _libc.ptrace(request, thread, address, data) == -1:
        error = ctypes.get_errno()
        if error == errno.ESRCH:
            return False
        raise OSError(error, f"ptrace {request:#x}: {os.strerror(error)}")
    return True


def _program(names: Iterable[str]) -> ctypes.Array[_Instruction]:
    """Return the filter that stops a process at these calls."""
    # Load the number (offset 0 of seccomp_data), compare, and return what to do (linux/filter.h).
    words = [(0x20, 0, 0, 0)]
    for index, name in enumerate(names):
        words += [(0x15, 0, 1, CALLS[name]), (0x06, 0, 0, RET_TRACE | index)]
    words.append((0x06, 0, 0, RET_ALLOW))
    return (_Instruction * len(words))(*(_Instruction(*word) for word in words))


def _install(program: ctypes.Array[_Instruction]) -> None:
    """Put this process, and all threads that it will have, under a filter."""
    whole = _Program(len(program), program)
    no = ctypes.c_ulong(0)
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), no, no, no) != 0:
        raise OSError(ctypes.get_errno(), "prctl: no_new_privs")
    mode = ctypes.c_ulong(SECCOMP_MODE_FILTER)
    if _libc.prctl(PR_SET_SECCOMP, mode, ctypes.byref(whole), no, no) != 0:
        raise OSError(ctypes.get_errno(), "prctl: seccomp")
