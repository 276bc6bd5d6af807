"""System calls of a command, seen before they run: to end it there, to make one fail, and to judge their order.

A filter by seccomp(2) stops the process at the calls that matter alone; ptrace(2) holds it meanwhile. x86-64 only.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

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
"""Calls that change nothing: seen only by a tracer that requests them."""
CHANGING = frozenset(CALLS) - READS
FICLONE = 0x40049409

PTRACE_CONT, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_SYSCALL = 7, 12, 13, 24
PTRACE_GETEVENTMSG, PTRACE_SEIZE = 0x4201, 0x4206
OPTIONS = 1 | 2 | 4 | 8 | 0x80 | 0x100000
"""TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACESECCOMP, EXITKILL."""
EVENT_SECCOMP, EVENT_STOP = 7, 128
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
    """The call does not run, and returns this: 0, or a negative error."""

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
    """Counts the calls that change files, and ends the process or lets one fail before call number `at`."""

    at: int
    error: str | None = None
    """Name of the error that the call returns; None: the process is killed."""
    count: int = 0
    did: str = ""
    """The call at which it was done."""

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        if self.did or not is_counted(call):
            return None
        self.count += 1
        if self.count < self.at:
            return None
        self.did = call.name
        return Kill() if self.error is None else Skip(-getattr(errno, self.error))


@dataclass
class Interruption(Observer):
    """Calls `act` before read number `at` of a file below `scope`, while the thread that reads is stopped."""

    at: int
    scope: str
    act: Callable[[], None]
    count: int = 0
    did: bool = False
    wants: frozenset[str] = frozenset({"pread64", "openat2"})

    def enter(self, call: Call) -> Act:
        """See `Observer`."""
        if not self.did and call.file(call.arguments[0]).startswith(self.scope):
            self.count += 1
            if self.count >= self.at:
                self.did = True
                self.act()
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


@dataclass
class Traced:
    """A process that is traced to its end."""

    observers: list[Observer]
    pending: dict[int, Call] = field(default_factory=dict)
    """Calls that run, by thread, of which the end is wanted."""
    others: dict[int, int] = field(default_factory=dict)
    """Status of other children of this process that ended during a wait for this one."""

    def run(
        self, commands: list[list[bytes]], state: Path, user: int | None = None, limit_s: float = command.TIME_LIMIT_S
    ) -> Result:
        """Run commands as `command.start` does, under the eyes of the observers."""
        names = sorted(set().union(*(observer.wants for observer in self.observers)))
        gate, open_gate = os.pipe()

        def prepare() -> None:
            os.close(open_gate)
            os.read(gate, 1)
            os.close(gate)
            _filter(names)

        child = command.start(commands, state, user, prepare)
        os.close(gate)
        _ptrace(PTRACE_SEIZE, child.pid, 0, OPTIONS)
        os.write(open_gate, b"x")
        os.close(open_gate)
        hung = False

        def end(*_: object) -> None:
            nonlocal hung
            hung = True
            os.kill(child.pid, signal.SIGKILL)

        previous = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            status = self._until_end(child.pid, names)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)
        result = child.result(status)
        return Result(-signal.SIGALRM, result.output + "\nthe command hangs") if hung else result

    def _until_end(self, process: int, names: list[str]) -> int:
        while True:
            thread, status = os.waitpid(-1, WALL)
            if not os.WIFSTOPPED(status):
                if thread == process:
                    return status
                self.others[thread] = status
                continue
            event, signal_number = status >> 16, os.WSTOPSIG(status)
            if event == EVENT_SECCOMP:
                self._enter(process, thread, names)
            elif signal_number == signal.SIGTRAP | 0x80:
                self._leave(thread)
            elif event:
                # A thread that begins or stops.
                _continue(thread)
            else:
                _continue(thread, signal_number)

    def _enter(self, process: int, thread: int, names: list[str]) -> None:
        message = ctypes.c_ulong()
        if not _ptrace(PTRACE_GETEVENTMSG, thread, 0, ctypes.addressof(message)):
            return
        call = Call(names[message.value], process, thread)
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
            end = Call(call.name, call.process, thread)
            result = ctypes.c_long(end.registers.rax).value
            for observer in self.observers:
                if call.name in observer.wants:
                    observer.leave(call, result)
        _continue(thread)


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


def _filter(names: Iterable[str]) -> None:
    """Stop this process, and all threads that it will have, at these calls."""
    # Load the number (offset 0 of seccomp_data), compare, and return what to do (linux/filter.h).
    words = [(0x20, 0, 0, 0)]
    for index, name in enumerate(names):
        words += [(0x15, 0, 1, CALLS[name]), (0x06, 0, 0, RET_TRACE | index)]
    words.append((0x06, 0, 0, RET_ALLOW))
    program = (_Instruction * len(words))(*(_Instruction(*word) for word in words))
    whole = _Program(len(words), program)
    no = ctypes.c_ulong(0)
    if _libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), no, no, no) != 0:
        raise OSError(ctypes.get_errno(), "prctl: no_new_privs")
    mode = ctypes.c_ulong(SECCOMP_MODE_FILTER)
    if _libc.prctl(PR_SET_SECCOMP, mode, ctypes.byref(whole), no, no) != 0:
        raise OSError(ctypes.get_errno(), "prctl: seccomp")
