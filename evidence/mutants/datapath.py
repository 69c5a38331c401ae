# SPDX-License-Identifier: Apache-2.0
"""Runs the datapath's tests on changed programs without building the tests again.

The tests are built once, in a copy of the repository whose agent takes one of its objects from a
file. A changed program is then compiled as the agent's build does it, and each test program
runs in namespaces of its own, which end with it.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

TESTS = ["datapath", "fuzz", "tunnels", "shim", "older", "observe", "authenticated", "policy"]
TESTS += ["control", "ports", "many_ports", "grant"]
"""Those that run the programs of a port, the quickest first; others take minutes."""

FOCUS = {
    "bpf/events.h": "observe",
    "bpf/grant.bpf.c": "grant",
    "bpf/grant_carrier.h": "grant",
    "bpf/grant_flows.h": "grant",
    "bpf/grant_peer.h": "grant",
    "bpf/known.h": "older",
    "bpf/observe.h": "observe",
    "bpf/queue.h": "observe",
    "bpf/shim.h": "fuzz",
    "bpf/sockets.h": "older",
}
"""The one to run first for a file, until a test has killed a mutant of it; else the quickest."""

CALM = {"datapath", "fuzz"}
"""Those that no other work on the machine can make fail."""

SPARING = {"RUST_TEST_THREADS": "1", "PENSTOCK_FUZZ_PACKETS": "40000"}
"""One thread loads the programs once, and gets to the first failure sooner."""

OBJECTS = ("port", "grant")
"""The objects with the programs of a port; `bpf/grant*` is in the second alone."""

OBJECT = "PENSTOCK_OBJECT"
"""In the environment: the file of an object that the agent loads instead of its own."""

BUILD_SCRIPT = "crates/agent/build.rs"

MAIN = "fn main() {"
ADAPTED = f"""fn main() {{
    if let Some(object) = std::env::var_os("{OBJECT}") {{
        let mut flags = clang_args(std::env::consts::ARCH);
        flags.push("-Wno-error".to_owned()); // a mutant may leave a variable unused
        let name = Path::new(&object).file_stem().unwrap().to_str().unwrap();
        return SkeletonBuilder::new()
            .source(format!("../../bpf/{{name}}.c"))
            .obj(&object)
            .clang_args(flags)
            .build()
            .unwrap();
    }}
    build();
    for stem in {json.dumps(OBJECTS)} {{
        let skeleton = Path::new(&std::env::var_os("OUT_DIR").unwrap())
            .join(format!("{{stem}}.skel.rs"));
        let text = std::fs::read_to_string(&skeleton).unwrap();
        let bytes = format!(r#"::new(
            std::env::var_os("{OBJECT}")
                .filter(|object| object.to_string_lossy().ends_with("/{{stem}}.bpf.o"))
                .map_or(&DATA[..], |object| &*std::fs::read(object).unwrap().leak())
        )"#);
        assert!(text.contains("::new(&DATA)"), "no place for another object in {{stem}}");
        std::fs::write(&skeleton, text.replace("::new(&DATA)", &bytes)).unwrap();
    }}
}}

fn build() {{"""
"""Makes the build script a compiler of that file, and the agent open it."""

NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]

REJECTED = "BEGIN PROG LOAD LOG"
"""What libbpf prints before the verifier's reasons."""


def adapted(name: str, content: bytes) -> bytes:
    """A file of the repository as it is to be in the copy.

    Raises:
        RuntimeError: The build script has no place for the changes.
    """
    if name != BUILD_SCRIPT:
        return content
    text = content.decode()
    if text.count(MAIN) != 1:
        raise RuntimeError(f"{BUILD_SCRIPT} must have once: {MAIN}")
    return text.replace(MAIN, ADAPTED).encode()


def object_of(file: str) -> str:
    """The object of a port that has a file of bpf/."""
    return "grant" if file.startswith("bpf/grant") else "port"


class Rejected(Exception):
    """The kernel's verifier rejects the programs."""


class Datapath:
    """The tests of a copy of the repository."""

    def __init__(self, repository: Path, target: Path) -> None:
        """Builds them."""
        self.repository = repository
        self.agent = repository / "crates" / "agent"
        self.built = target / "mutants.d"
        self.built.mkdir(exist_ok=True)
        self.programs, self.compiler = self.build(target)
        self.sound = self.place("sound")
        self.original = {name: self.compile(self.sound, name) for name in OBJECTS}
        self.seconds: dict[str, float] = {}
        self.expect_rejection: set[str] = set()
        self.checks = threading.Lock()

    def place(self, name: str) -> Path:
        """A folder for one mutant at a time: what the compiler reads, and writes."""
        folder = self.built / name
        shutil.rmtree(folder, ignore_errors=True)
        for part in ("bpf", "core"):
            shutil.copytree(self.repository / part, folder / part)
        (folder / "crates" / "agent").mkdir(parents=True)
        return folder

    def check(self, name: str, object_name: str) -> None:
        """Runs a test program without a mutant, once.

        Raises:
            RuntimeError: It fails.
        """
        with self.checks:
            if name in self.seconds:
                return
            begun = time.monotonic()
            failed, printed = self.run(self.sound / f"{object_name}.bpf.o", name)
            if failed:
                raise RuntimeError(f"{name} fails without a mutant: {failed}\n{printed[-2000:]}")
            self.seconds[name] = time.monotonic() - begun
            if REJECTED in printed:
                self.expect_rejection.add(name)
            print(f"{name}: {self.seconds[name]:.1f} s", flush=True)

    def build(self, target: Path) -> tuple[dict[str, str], str]:
        """The test programs by name, and the build script, which compiles the programs."""
        command = ["cargo", "test", "--no-run", "--package", "penstockd"]
        command += ["--message-format=json-render-diagnostics"]
        for name in TESTS:
            command += ["--test", name]
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        built = subprocess.run(
            command, cwd=self.agent, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        programs, compiler = {}, ""
        for message in map(json.loads, built.stdout.splitlines()):
            kind = message.get("target", {}).get("kind")
            if kind == ["test"]:
                # Copied, as cargo may replace it meanwhile.
                name = message["target"]["name"]
                programs[name] = str(self.built / name)
                shutil.copy(str(message["executable"]), programs[name])
            elif kind == ["custom-build"] and str(self.agent) in message["target"]["src_path"]:
                compiler = str(self.built / "compiler")
                shutil.copy(str(message["filenames"][0]), compiler)
        return programs, compiler

    def compile(self, place: Path, name: str) -> dict[str, bytes] | None:
        """Compiles an object as it is now; its code, or None if it does not compile."""
        made = place / f"{name}.bpf.o"
        compiled = subprocess.run(
            [self.compiler],
            cwd=place / "crates" / "agent",
            env={**os.environ, OBJECT: str(made), "CARGO_CFG_TARGET_ARCH": "x86_64"},
            capture_output=True,
            check=False,
        )
        return None if compiled.returncode else code(made.read_bytes())

    def run(self, changed: Path, name: str, test: str = "") -> tuple[str, str]:
        """Runs a test program, or one test of it, with an object, up to the first failure.

        Returns what failed, "" if nothing, and the output.

        Raises:
            Rejected: The verifier takes no changed program.
        """
        scratch = tempfile.mkdtemp(prefix="penstock-mutant-")
        # Mounts, processes and files of a test that is killed go with the namespaces.
        process = subprocess.Popen(
            [*NAMESPACES, self.programs[name], "--nocapture"] + (["--exact", test] if test else []),
            cwd=self.agent,
            env={**os.environ, **SPARING, OBJECT: str(changed), "TMPDIR": scratch},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        limit = threading.Timer(240 + 10 * self.seconds.get(name, 100), end)
        limit.start()
        printed, running, failed = "", "", ""
        assert process.stdout
        for line in process.stdout:
            printed += line
            if begun := re.search(r"test (\S+) \.\.\. ", line):
                running = begun[1]
            if re.search(r"(^|\.\.\. )FAILED$", line):
                failed = running
                break
            if (
                REJECTED in line
                and changed.parent != self.sound
                and name not in self.expect_rejection
            ):
                failed = REJECTED
                break
        process.kill()
        status = process.wait()
        limit.cancel()
        shutil.rmtree(scratch, ignore_errors=True)
        if failed == REJECTED:
            raise Rejected
        if late.is_set():
            failed = "time-limit"
        elif not failed and "test result: ok" not in printed:
            failed = f"exit-code-{status}"
        return failed, printed

    def verdict(
        self, place: Path, file: str, earlier: Counter[str], programs: list[str]
    ) -> tuple[str, str]:
        """`killed`, `survived`, `same` or `not viable`, and by which test or why.

        The tests that killed most mutants of a file `earlier` come first, then all of `programs`.
        A failure that may be due to other work on the machine must happen twice.
        """
        name = object_of(file)
        now = self.compile(place, name)
        if now is None:
            return "not viable", "it does not compile"
        if now == self.original[name]:
            return "same", "the compiler makes the same code of it"
        first = [killer.split() for killer, _ in earlier.most_common(3)]
        programs = list(dict.fromkeys([FOCUS.get(file, programs[0]), *programs]))
        try:
            for arguments in [*first, *([program] for program in programs)]:
                self.check(arguments[0], name)
                failed = self.run(place / f"{name}.bpf.o", *arguments)[0]
                if failed and arguments[0] not in CALM:
                    failed = self.run(place / f"{name}.bpf.o", *arguments)[0]
                if failed:
                    return "killed", f"{arguments[0]} {failed}"
        except Rejected:
            return "not viable", "the verifier rejects it"
        return "survived", ""


def code(file: bytes) -> dict[str, bytes]:
    """The sections of an ELF file (64 bit, little endian) that the kernel gets, by name."""
    (table,) = struct.unpack_from("<Q", file, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", file, 0x3A)
    sections = {}
    names = struct.unpack_from("<Q", file, table + of_names * size + 0x18)[0]
    for at in range(table, table + count * size, size):
        name, kind = struct.unpack_from("<II", file, at)
        begin, length = struct.unpack_from("<QQ", file, at + 0x18)
        word = file[names + name : file.index(b"\0", names + name)].decode()
        # Debug information has line numbers; symbols and strings are of it, too.
        if kind in (1, 9) and "BTF" not in word and "debug" not in word:
            sections[word] = file[begin : begin + length]
    return sections
