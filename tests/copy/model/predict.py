"""The model: the tree that a copy has to leave, from the tree before it and the words of docs/howto/copy.md."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.copy.model.request import Excluded, Request
from tests.copy.model.walk import Node, Tree, below, children, parent

STATE = b".elephan-copy"
SET_ID = 0o6000
CAPABILITY = "security.capability"
DEFAULT_ACL = "system.posix_acl_default"
FREE_TIME = frozenset({"modified_ns"})


@dataclass
class Prediction:
    """The end of a copy."""

    tree: Tree
    """The world after the copy."""
    choices: dict[bytes, list[Node | None]] = field(default_factory=dict)
    """Paths where the world may have any of several entries; None: nothing."""
    codes: set[int] = field(default_factory=lambda: {0})
    """Exit codes that are right."""
    entries: dict[bytes, Node] = field(default_factory=dict)
    """Entries of the sources by the path that they get."""
    origins: dict[bytes, bytes] = field(default_factory=dict)
    """Paths at the sources, by the path that they get."""
    faults: set[bytes] = field(default_factory=set)
    """Entries that cannot be copied, by the path that they would get."""
    linked: dict[bytes, bytes] = field(default_factory=dict)
    """Files that are names of a file of the older version, with its path."""
    removed: list[bytes] = field(default_factory=list)
    excess: int = 0
    """Removals that are refused."""
    limits: bool = True
    vague: bool = False
    """The number of removals is not known."""
    settled: set[bytes] = field(default_factory=set)
    """Files that keep their content by size and time, though the sources have another one."""


def predict(
    before: Tree,
    request: Request,
    mounts: frozenset[bytes] = frozenset(),
    limits: bool = True,
    refused: bool = True,
    fails: bool = False,
) -> Prediction:
    """Return the end of a copy that nothing disturbs. `mounts`: mount points. `limits`: removals are bounded.
    `refused`: what the user may not read cannot be copied; else it need not be read. `fails`: of choices, the one that
    is a fault was made.
    """
    return _Copy(before, request, mounts, limits, refused, fails).predict()


class _Copy:
    def __init__(
        self, before: Tree, request: Request, mounts: frozenset[bytes], limits: bool, refused: bool, fails: bool
    ) -> None:
        self.refused = refused
        self.fails = fails
        self.before = before
        self.request = request
        self.mounts = mounts
        self.limits = limits
        self.excluded = Excluded(request.exclude)
        self.out = Prediction(dict(before), limits=limits)
        self.top = request.destination.rstrip(b"/")
        """Path that entries are below."""
        self.left_out: set[bytes] = set()
        """Folders of which the content stayed behind with its file system."""
        self.uncopied: set[bytes] = set()
        """Paths of sockets of the sources: what has such a path at the destination stays."""
        self.first: dict[tuple[object, ...], bytes] = {}
        """Content of the first name of each file."""
        self.owners: dict[tuple[object, ...], frozenset[int]] = {}
        """Owners that the first name of each file may have."""
        self.few: dict[tuple[object, ...], dict[str, bytes]] = {}
        """Attributes that the first name of each file may have where they are left out."""
        self.known: set[tuple[object, ...]] = set()
        """Files of which a name is there already."""
        self.free_content: set[tuple[object, ...]] = set()
        """Files that keep a content that size and time do not show to be another one, or get that of the source."""
        self.tops: set[bytes] = set()
        """Names directly below the destination, where sources may clash."""
        self.contents = sum(source.endswith(b"/") for source in request.sources)

    def predict(self) -> Prediction:
        out = self.out
        self._plan()
        self._destination()
        in_the_way: list[bytes] = []
        empty: list[bytes] = []
        labels = self._labels()
        self.known = {label for path, label in labels.items() if path in out.tree}
        for path, source in out.entries.items():
            if path in out.faults:
                continue
            there = out.tree.get(path)
            if there is not None and there.kind == "folder" and source.kind != "folder":
                if self._is_elsewhere(path):
                    out.faults.add(path)
                    continue
                if children(out.tree, path):
                    if not self.request.on("mirror") or self._is_source_link(path) or self._protected_below(path):
                        out.faults.add(path)
                        continue
                    in_the_way.append(path)
                elif path in self.mounts:
                    out.faults.add(path)
                    continue
                elif not self._is_source_link(path):
                    empty.append(path)
            self._place(path, source, there, labels)
        self._blocked_links()
        self._links_across_mounts()
        removed = [] if out.faults else self._removals(in_the_way)
        limit = self.request.max_removals
        # A folder in the way is removed as well, an empty one too.
        count = len(removed) + (len(empty) if self.request.on("mirror") else 0)
        if self.limits and not out.faults and count > (self._count() if limit is None else limit):
            out.excess = count
            removed = []
            out.codes = {1}
        if out.excess or out.faults:
            for path in in_the_way:
                self._restore(path)
            for path in self._links_to(in_the_way):
                self._stays(path)
        for path in removed:
            if path not in out.entries:
                out.tree.pop(path, None)
        for path in in_the_way:
            if not out.faults and not out.excess:
                for lower in below(self.before, path):
                    out.tree.pop(lower, None)
        out.removed = removed
        out.vague |= bool(empty) and self.request.on("mirror")
        for path in removed:
            self._changed(parent(path))
        if out.faults:
            out.codes = {1}
        may_stay = empty if out.faults or out.excess else []
        if self.fails and out.vague:
            may_stay = empty + in_the_way
        if may_stay:
            # An empty folder makes room in the last phase, too, and that may not be reached.
            for path in may_stay:
                for lower in below(self.before, path):
                    out.choices[lower] = [self.before[lower], None]
                out.choices[path] = [self.before[path], out.tree[path]]
            for path in self._links_to(may_stay):
                out.choices[path] = [self.before.get(path), out.tree.get(path)]
        return out

    def _is_elsewhere(self, path: bytes) -> bool:
        """Return True if a folder at a path is one that --mirror would remove, on another mount than the destination's.
        """
        is_removal = self.request.on("mirror") and not self._is_source_link(path)
        return is_removal and self._mount_of(parent(path)) != self._mount_of(self.top)

    def _is_source_link(self, path: bytes) -> bool:
        """Return True for a symbolic link that is a source itself: no folder with something in it gives way to it."""
        return self.out.entries[path].kind == "symlink" and self.out.origins[path] in self.request.sources

    def _count(self) -> int:
        """Return how many entries the sources have: a source whose content is copied is none itself."""
        return len(self.out.entries) - (self.top in self.out.entries)

    def _changed(self, folder: bytes) -> None:
        """A folder that is no entry gets the time of the change."""
        node = self.out.tree.get(folder)
        if node is not None and folder not in self.out.entries:
            self.out.tree[folder] = node.but(unjudged=node.unjudged | FREE_TIME)

    # Entries of the sources.

    def _plan(self) -> None:
        for source in self.request.sources:
            root = source.rstrip(b"/")
            node = self.before[root]
            if source.endswith(b"/"):
                self._visit(root, b"", node.device)
            else:
                self._visit(root, root.rpartition(b"/")[2], node.device)

    def _at(self, path: bytes) -> bytes:
        if self._is_renamed():
            return self.top
        return self.top + b"/" + path if path else self.top

    def _is_renamed(self) -> bool:
        """One file to a new name."""
        sources = self.request.sources
        if len(sources) > 1 or self.before[sources[0].rstrip(b"/")].kind == "folder":
            return False
        there = self.before.get(self.top)
        return there is None or there.kind != "folder"

    def _visit(self, origin: bytes, path: bytes, device: int) -> None:
        node = self.before[origin]
        if path and self.excluded.names(path, node.kind == "folder"):
            return
        at = self._at(path)
        if path and b"/" not in path:
            if path in self.tops:
                self.out.faults.add(at + b"\0second source")
                return
            self.tops.add(path)
        if node.kind == "socket":
            self.uncopied.add(at)
            return
        need_not_be_read = node.kind == "file" and self._stays_there(node, self.before.get(at))
        if self.refused and not self._is_readable(node) and not need_not_be_read:
            self.out.faults.add(at)
            self.out.entries[at] = node
            self.out.origins[at] = origin
            self.left_out.add(at)
            if node.kind == "folder":
                # It may be made, without its content.
                self.out.choices[at] = [self.before.get(at), node.but(unjudged=FREE_TIME)]
            return
        self.out.entries[at] = node
        self.out.origins[at] = origin
        if node.kind == "folder":
            if self.request.on("one_file_system") and node.device != device:
                self.left_out.add(at)
                return
            for child in children(self.before, origin):
                name = child.rpartition(b"/")[2]
                if name != STATE:
                    self._visit(child, path + b"/" + name if path else name, device)

    def _stays_there(self, source: Node, there: Node | None) -> bool:
        """A file need not be written: it looks the same, and none of its other names would get new metadata."""
        if there is None or not self._looks_same(source, there):
            return False
        if there.links == 1:
            return True
        first, second = (
            {name: value for name, value in node.xattrs.items() if not name.startswith("trusted.")}
            for node in (source, there)
        )
        return source.mode == there.mode and (self.request.on("no_xattrs") or first == second)

    def _is_readable(self, node: Node) -> bool:
        user = self.request.user
        if user is None:
            return True
        if node.kind not in ("file", "folder"):
            return "device" not in node.kind
        needed = 5 if node.kind == "folder" else 4
        shift = 6 if node.uid == user else 3 if node.gid == user else 0
        return (node.mode >> shift) & needed == needed

    def _labels(self) -> dict[bytes, tuple[object, ...]]:
        """Return a label per file of the sources: names of the same file have the same."""
        out = self.out
        return {path: ("source", *node.inode) for path, node in out.entries.items() if node.kind == "file"}

    # Entries at the destination.

    def _destination(self) -> None:
        out = self.out
        above = parent(self.top)
        is_tree = not self._is_renamed()
        if self.top not in out.tree and is_tree:
            fresh = Node("folder", 0o755, self.request.user or 0, 0, 0, {}, b"", 0, ("fresh",), 0)
            out.tree[self.top] = fresh.but(unjudged=frozenset({"modified_ns", "xattrs", "gid", "mode"}))
            self._changed_time(above)
        elif self.top in out.tree and out.tree[self.top].kind == "folder":
            self._changed_time(self.top)
        if not is_tree:
            self._changed_time(above)
        # It has the states of other copies, and this copy makes and removes its own.
        self._changed((self.top if is_tree else above) + b"/" + STATE)

    def _changed_time(self, folder: bytes) -> None:
        node = self.out.tree[folder]
        self.out.tree[folder] = node.but(unjudged=node.unjudged | FREE_TIME)

    def _place(self, path: bytes, source: Node, there: Node | None, labels: dict[bytes, tuple[object, ...]]) -> None:
        out, request = self.out, self.request
        is_same_kind = there is not None and there.kind == source.kind
        unjudged: set[str] = set()
        if path == self.top and self.contents > 1:
            unjudged |= {"mode", "uid", "gid", "xattrs", "modified_ns"}
        content, size = source.content, source.size
        if source.kind == "file":
            if there is not None and is_same_kind and self._looks_same(source, there):
                content = there.content
                if content != source.content and self._gets_metadata_anew(source, there):
                    self.free_content.add(labels[path])
            # Further names of a file are links to its first one, whatever they had.
            content = self.first.setdefault(labels[path], content)
            if content != source.content:
                out.settled.add(path)
            if labels[path] in self.free_content:
                unjudged.add("content")
        node = source.but(content=content, size=size, unjudged=frozenset(unjudged))
        if source.kind == "file":
            node = node.but(inode=labels[path])
            if there is None and request.link_to is not None:
                node = self._linked(path, source, node)
        else:
            node = node.but(inode=("new", path))
        if source.kind == "file" and (labels[path] in self.known or request.link_to is not None):
            node = node.but(unjudged=node.unjudged | {"extents"})
        if request.on("no_sparse"):
            node = node.but(unjudged=node.unjudged | {"extents"})
        node = self._owned(node, source, there if is_same_kind else None)
        if request.on("no_owners"):
            user = request.user or 0
            owners = frozenset({user, there.uid} if there is not None and is_same_kind else {user})
            if source.kind == "file":
                owners = self.owners.setdefault(labels[path], owners)
            node = node.but(unjudged=node.unjudged | {"capability"}, owners=owners)
            if request.link_to is not None:
                node = node.but(owners=frozenset())
        if request.on("no_xattrs"):
            few = there.xattrs if there is not None and is_same_kind else {}
            if source.kind == "file":
                few = self.few.setdefault(labels[path], few)
            free = {"xattrs", "few_xattrs" if request.link_to is None else "xattrs"}
            if there is not None and is_same_kind and source.kind == "folder":
                free = set()
            if self._inherits_acl(path):
                free.add("inherited_acl")
            # chmod(2) sets the entries of the ACL that stand for bits of the mode.
            node = node.but(xattrs=few, unjudged=node.unjudged | free | {"acl_by_mode"})
        if source.kind != "folder" and there is not None and there.kind == "folder":
            self._remove_below(path)
        out.tree[path] = node
        self._changed(parent(path))

    def _inherits_acl(self, path: bytes) -> bool:
        """A folder above has an ACL for what is made in it."""
        while path := parent(path):
            if path in self.before and DEFAULT_ACL in self.before[path].xattrs:
                return True
        return False

    def _remove_below(self, path: bytes) -> None:
        for lower in below(self.out.tree, path):
            if lower not in self.out.entries:
                del self.out.tree[lower]

    def _restore(self, path: bytes) -> None:
        """A folder in the way stays, with all below it."""
        self.out.tree[path] = self.before[path]
        for lower in below(self.before, path):
            self.out.tree[lower] = self.before[lower]

    def _looks_same(self, source: Node, there: Node | None) -> bool:
        if self.request.on("checksum") or there is None or there.kind != "file":
            return False
        return there.size == source.size and there.modified_ns == source.modified_ns

    def _gets_metadata_anew(self, source: Node, there: Node) -> bool:
        """A file with other names, which keep their metadata: a new one gets those of the source, and may be read."""
        return there.links > 1 and any(
            getattr(source, name) != getattr(there, name) for name in ("mode", "uid", "gid", "xattrs")
        )

    def _linked(self, path: bytes, source: Node, node: Node) -> Node:
        """A file that the older version has as well is a name of it."""
        older_path = (self.request.link_to or b"") + path[len(self.top) :]
        older = self.before.get(older_path)
        if older is None or older.kind != "file" or self.request.on("checksum"):
            return node
        if not self._looks_same(source, older):
            return node
        fields = ("mode", "xattrs") + (() if self.request.on("no_owners") else ("uid", "gid"))
        if self.request.on("no_xattrs"):
            fields = tuple(name for name in fields if name != "xattrs")
        wanted = source
        if self.request.on("no_owners"):
            # A change of the owner clears a capability, as set-user-ID: a link must not bring them.
            wanted = source.but(xattrs={key: value for key, value in source.xattrs.items() if key != CAPABILITY})
            if (older.uid, older.gid) != (source.uid, source.gid):
                wanted = wanted.but(mode=source.mode & ~SET_ID)
        if any(getattr(older, name) != getattr(wanted, name) for name in fields):
            # Its content may be taken from there: that is what size and time promise.
            return self._may_be_older(node) if older.content != source.content else node
        if older.content != source.content:
            return self._may_be_older(node)
        is_one_mount = self._mount_of(path) == self._mount_of(self.top)
        if older.links == 1 and source.links == 1 and is_one_mount:
            self.out.linked[path] = older_path
        return node

    def _may_be_older(self, node: Node) -> Node:
        """Return a file that may have the content of its older version; its further names are links to it."""
        self.free_content.add(node.inode)
        return node.but(unjudged=node.unjudged | {"content"})

    def _owned(self, node: Node, source: Node, there: Node | None) -> Node:
        user = self.request.user
        if not self.request.on("no_owners") and user is None:
            return node
        free = {"uid", "gid"}
        node = node.but(source_owners=(source.uid, source.gid))
        if user is not None:
            node = node.but(uid=user)
            free.discard("uid")
        if node.kind not in ("folder", "symlink"):
            free.add("set_id")
        return node.but(unjudged=node.unjudged | free)

    def _blocked_links(self) -> None:
        """Other names of a file of which one name cannot be made may be missing or not."""
        out = self.out
        blocked = {out.entries[path].inode for path in out.faults if path in out.entries}
        for path, source in out.entries.items():
            if source.kind == "file" and source.inode in blocked and path not in out.faults:
                out.choices[path] = [out.tree.get(path), self.before.get(path)]

    def _links_to(self, stopped: list[bytes]) -> list[bytes]:
        """Return the links to first names that a folder is in the way of: they are not made, as those are not."""
        firsts: dict[tuple[object, ...], bytes] = {}
        links = []
        for path, source in self.out.entries.items():
            if source.kind == "file" and firsts.setdefault(source.inode, path) in stopped and path not in stopped:
                links.append(path)
        return links

    def _stays(self, path: bytes) -> None:
        """Nothing is made at a path."""
        node = self.before.get(path)
        if node is None:
            self.out.tree.pop(path, None)
        else:
            self.out.tree[path] = node

    def _links_across_mounts(self) -> None:
        """Names of one file cannot be on two mounts: they may be copied apart, or refused."""
        groups: dict[tuple[object, ...], set[bytes]] = {}
        for path, source in self.out.entries.items():
            if source.kind == "file":
                groups.setdefault(source.inode, set()).add(self._mount_of(path))
        for path, source in self.out.entries.items():
            if source.kind == "file" and len(groups[source.inode]) > 1:
                self.out.choices[path] = [self.out.tree.get(path), self.before.get(path)]
                self.out.codes = {0, 1}
                if self.fails:
                    self.out.faults.add(path)

    def _mount_of(self, path: bytes) -> bytes:
        while path and path not in self.mounts:
            path = parent(path)
        return path

    # Removals.

    def _removals(self, in_the_way: list[bytes]) -> list[bytes]:
        if not self.request.on("mirror"):
            return []
        doomed: list[bytes] = []
        for path, source in self.out.entries.items():
            is_there = source.kind == "folder" and path not in self.left_out
            # Nothing is removed on another mount.
            if is_there and self._mount_of(path) == self._mount_of(self.top):
                for child in children(self.out.tree, path):
                    if child in self.out.entries or child in self.uncopied:
                        continue
                    if any(lower in self.mounts for lower in (child, *below(self.out.tree, child))):
                        self._stays_mounted(child)
                    else:
                        self._doom(child, doomed)
        if self.fails and self.out.vague:
            # A mount that is in the way is a fault: the rest may be removed then or not.
            for path in doomed:
                node = self.out.tree[path]
                self.out.choices[path] = [node.but(unjudged=node.unjudged | FREE_TIME), None]
                self._changed(parent(path))
            return []
        for path in in_the_way:
            doomed += [*below(self.before, path), path]
        return doomed

    def _stays_mounted(self, path: bytes) -> None:
        """A mount stays, with all below it, whether that is a fault or not; what is beside it may be removed or not."""
        out = self.out
        out.codes.add(1)
        out.vague = True
        for lower in (path, *below(out.tree, path)):
            node = out.tree[lower]
            if self._mount_of(lower) != self._mount_of(self.top):
                continue
            out.choices[lower] = [node.but(unjudged=node.unjudged | FREE_TIME)]
            if not any(mount == lower or mount.startswith(lower + b"/") for mount in self.mounts):
                out.choices[lower].append(None)

    def _doom(self, path: bytes, doomed: list[bytes]) -> bool:
        """Add what is removed of a path and all below it; return True if the path itself is removed."""
        node = self.out.tree[path]
        name = path.rpartition(b"/")[2]
        relative = path[len(self.top) + 1 :]
        if path in self.mounts:
            return False
        if name == STATE or self.excluded.names(relative, node.kind == "folder"):
            return False
        whole = True
        for child in children(self.out.tree, path) if node.kind == "folder" else []:
            whole &= self._doom(child, doomed)
        if whole:
            doomed.append(path)
        return whole

    def _protected_below(self, path: bytes) -> bool:
        for lower in [path, *below(self.before, path)]:
            relative = lower[len(self.top) + 1 :]
            is_folder = self.before[lower].kind == "folder"
            if lower in self.mounts or (lower != path and self.excluded.names(relative, is_folder)):
                return True
        return False
