"""Programs over FTP: curl and lftp, each with a vsftpd."""

from __future__ import annotations

from elephan.backends.programs.ends import Data, End, File, Place, apart, to_receive, to_send, users
from elephan.run_spec.types import ProgramWorkloadSpec
from elephan.scenario.program import buffer_of, streams_of

DATA_PORTS = (40_000, 40_999)
"""Of passive mode. On one machine the hosts are the flow's own, so the ports are free."""

_VSFTPD = """\
listen=YES
listen_ipv6=NO
listen_address={address}
listen_port={port}
background=NO
anonymous_enable=YES
local_enable=NO
no_anon_password=YES
ftp_username=nobody
nopriv_user=nobody
anon_root={root}
secure_chroot_dir={folder}/empty
write_enable=YES
anon_upload_enable=YES
anon_other_write_enable=YES
connect_from_port_20=NO
pasv_min_port={first}
pasv_max_port={last}
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
xferlog_enable=NO
syslog_enable=NO
"""
"""Its processes stay in the namespaces that they were started in, with which they are ended."""

_LFTP = """\
set cmd:fail-exit yes
set net:max-retries 1
set net:connection-limit 0
set net:socket-bind-ipv4 {near}
set ftp:ssl-allow no
set xfer:log no
set xfer:clobber yes
set xfer:make-backup no
"""


def pushed(workload: ProgramWorkloadSpec, near: Place, far: Place, port: int) -> tuple[End, End]:
    """Return server, at `far`, and client of `ftp` and `lftp`."""
    # vsftpd cuts a file before it writes to it, which a device does not bear; but for appending, which lftp cannot.
    received = to_receive(workload, far, devices=workload["program"] == "ftp")
    sent = to_send(workload, near)
    server = _vsftpd(workload, far, port, received.folder.removesuffix("/sink"), received)
    url = f"ftp://{far.address}:{port}"
    if workload["program"] == "ftp":
        pairs = zip(sent.paths, received.names, strict=True)
        given = "".join(f'upload-file = "{path}"\nurl = "{url}/sink/{name}"\n' for path, name in pairs)
        words = [near.command("curl"), "-q", "-sS", "--noproxy", "*", "--interface", near.address, "--ftp-pasv"]
        words += ["--append"] if received.kind == "devices" else []
        return server, End((*words, "-K", f"{near.folder}/curl.conf"), (File("curl.conf", given),), sent)
    put = f"mput -P {streams_of(workload)} -O /sink {' '.join(sent.paths)}\n"
    return server, End(*_lftp(workload, near, url, put), sent)


def fetched(workload: ProgramWorkloadSpec, near: Place, far: Place, port: int) -> tuple[End, End]:
    """Return server, at `near`, and client of `pget`."""
    received, sent = to_receive(workload, far), to_send(workload, near)
    pairs = zip(sent.names, received.paths, strict=True)
    script = "set pget:save-status never\nset pget:min-chunk-size 1\n"
    script += "".join(f"pget -n {streams_of(workload)} /{name} -o {path}\n" for name, path in pairs)
    words, files = _lftp(workload, far, f"ftp://{near.address}:{port}", script)
    server = _vsftpd(workload, near, port, sent.folder, sent)
    return server, End(apart(far, list(words), received), files, received)


def _vsftpd(workload: ProgramWorkloadSpec, place: Place, port: int, root: str, data: Data) -> End:
    """Return the server, whose users see the folder `root`."""
    first, last = DATA_PORTS
    text = _VSFTPD.format(address=place.address, port=port, root=root, folder=f"{place.folder}", first=first, last=last)
    buffer = buffer_of(workload)
    if buffer is not None and workload["program"] == "ftp":
        text += f"trans_chunk_size={buffer}\n"
    receives = data if data.kind in ("devices", "tmpfs", "disk") else None
    words = [place.command("vsftpd"), f"{place.folder}/vsftpd.conf"]
    # A folder with nothing in it, which vsftpd locks itself into.
    files = (*users(root), File("vsftpd.conf", text), File("empty/", "", 0o755))
    return End(apart(place, words, receives), files, data)


def _lftp(
    workload: ProgramWorkloadSpec, place: Place, url: str, commands: str
) -> tuple[tuple[str, ...], tuple[File, ...]]:
    buffer = buffer_of(workload)
    script = _LFTP.format(near=place.address)
    if buffer is not None and workload["program"] == "lftp":
        script += f"set xfer:buffer-size {buffer}\n"
    script += f"open {url}\n{commands}"
    return (place.command("lftp"), "--norc", "-f", f"{place.folder}/lftp"), (File("lftp", script),)
