"""Programs over FTP: curl and lftp, each with a vsftpd."""

from __future__ import annotations

import secrets

from elephan.backends.programs.ends import Apart, Data, End, File, Place, to_receive, to_send, users
from elephan.run_spec.types import ProgramWorkloadSpec
from elephan.scenario.program import buffer_of, streams_of

_VSFTPD = """\
{listen}
listen_port={port}
background=NO
anonymous_enable=YES
local_enable=NO
no_anon_password=NO
secure_email_list_enable=YES
email_password_file={folder}/passwords
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
pasv_address={outside}
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
xferlog_enable=NO
syslog_enable=NO
"""
"""Its processes stay in the namespaces that they were started in, with which they are ended. Nobody logs in without the
password that was made for the run."""

_LFTP = """\
set cmd:fail-exit yes
set net:max-retries 1
set net:connection-limit 0
set net:socket-bind-{family} {near}
set ftp:ssl-allow no
set xfer:log no
set xfer:clobber yes
set xfer:make-backup no
"""


def pushed(workload: ProgramWorkloadSpec, near: Place, far: Place, port: int, limit_bps: int | None) -> tuple[End, End]:
    """Return server, at `far`, and client of `ftp` and `lftp`, which sends at most so many bit/s."""
    # vsftpd cuts a file before it writes to it, which a device does not bear; but for appending, which lftp cannot.
    received = to_receive(workload, far, devices=workload["program"] == "ftp")
    sent = to_send(workload, near)
    password = secrets.token_hex(16)
    server = _vsftpd(workload, far, port, received.folder.removesuffix("/sink"), received, password)
    url = f"ftp://{far.in_url}:{port}"
    if workload["program"] == "ftp":
        pairs = zip(sent.paths, received.names, strict=True)
        given = f'user = "anonymous:{password}"\n'
        given += "".join(f'upload-file = "{path}"\nurl = "{url}/sink/{name}"\n' for path, name in pairs)
        words = [near.command("curl"), "-q", "-sS", "--noproxy", "*", "--interface", near.address, "--ftp-pasv"]
        words += ["--append"] if received.kind == "devices" else []
        words += [] if limit_bps is None else ["--limit-rate", str(max(limit_bps // 8, 1))]
        return server, End((*words, "-K", f"{near.folder}/curl.conf"), (File("curl.conf", given),), sent)
    put = f"mput -P {streams_of(workload)} -O /sink {' '.join(sent.paths)}\n"
    return server, End(*_lftp(workload, near, url, password, put, limit_bps), sent)


def fetched(
    workload: ProgramWorkloadSpec, near: Place, far: Place, port: int, limit_bps: int | None
) -> tuple[End, End]:
    """Return server, at `near`, and client of `pget`, which fetches at most so many bit/s."""
    password = secrets.token_hex(16)
    received, sent = to_receive(workload, far), to_send(workload, near)
    pairs = zip(sent.names, received.paths, strict=True)
    script = "set pget:save-status never\nset pget:min-chunk-size 1\n"
    script += "".join(f"pget -n {streams_of(workload)} /{name} -o {path}\n" for name, path in pairs)
    words, files = _lftp(workload, far, f"ftp://{near.in_url}:{port}", password, script, limit_bps)
    server = _vsftpd(workload, near, port, sent.folder, sent, password)
    return server, End(words, files, received, Apart(received) if received.kind == "devices" else None)


def _vsftpd(workload: ProgramWorkloadSpec, place: Place, port: int, root: str, data: Data, password: str) -> End:
    """Return the server, whose users see the folder `root`."""
    first, last = place.data_ports
    family, other, v6 = ("listen_ipv6", "listen", "6") if place.is_ipv6 else ("listen", "listen_ipv6", "")
    text = _VSFTPD.format(
        listen=f"{family}=YES\n{other}=NO\nlisten_address{v6}={place.address}",
        port=port,
        root=root,
        folder=place.folder,
        first=first,
        last=last,
        outside=place.reached,
    )
    if place.is_ipv6:
        # Of IPv6 the command EPSV tells no address.
        text = text.replace(f"pasv_address={place.reached}\n", "")
    buffer = buffer_of(workload)
    if buffer is not None and workload["program"] == "ftp":
        text += f"trans_chunk_size={buffer}\n"
    receives = data if data.kind in ("devices", "tmpfs", "disk") else None
    words = [place.command("vsftpd"), f"{place.folder}/vsftpd.conf"]
    # A folder with nothing in it, which vsftpd locks itself into.
    files = (
        *users(place, root),
        File("vsftpd.conf", text),
        File("passwords", f"{password}\n"),
        File("empty/", "", 0o755),
    )
    return End(tuple(words), files, data, Apart(receives))


def _lftp(
    workload: ProgramWorkloadSpec, place: Place, url: str, password: str, commands: str, limit_bps: int | None
) -> tuple[tuple[str, ...], tuple[File, ...]]:
    buffer = buffer_of(workload)
    script = _LFTP.format(near=place.address, family="ipv6" if place.is_ipv6 else "ipv4")
    if limit_bps is not None:
        # Of both ways, down and up.
        script += f"set net:limit-total-rate {max(limit_bps // 8, 1)}:{max(limit_bps // 8, 1)}\n"
    if buffer is not None and workload["program"] == "lftp":
        script += f"set xfer:buffer-size {buffer}\n"
    script += f"set ftp:anon-pass {password}\nopen {url}\n{commands}"
    return (place.command("lftp"), "--norc", "-f", f"{place.folder}/lftp"), (File("lftp", script),)
