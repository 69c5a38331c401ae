# SPDX-License-Identifier: Apache-2.0
"""Runs the datapath's tests on changed programs without building the tests again.

The tests are built once, in a copy of the repository whose agent takes the programs of its ports
from a file. A changed program is then compiled as the agent's build does it, and each test program
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
TESTS += ["control", "ports", "many_ports"]
"""Those that run the programs of a port, the quickest first; others take minutes."""

FOCUS = {
    "bpf/events.h": "observe",
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

NAME = "port.bpf.o"
OBJECT = "PENSTOCK_OBJECT"
"""The file that the agent loads, in the environment."""

BUILD_SCRIPT = "crates/agent/build.rs"

CHANGES = [
    (
        "fn main() {",
        f"""fn main() {{
    if let Some(object) = std::env::var_os("{OBJECT}") {{
        let mut flags = clang_args(std::env::consts::ARCH);
        flags.push("-Wno-error".to_owned()); // a mutant may leave a variable unused
        return SkeletonBuilder::new()
            .source("../../bpf/port.bpf.c")
            .obj(object)
            .clang_args(flags)
            .build()
            .unwrap();
    }}""",
    ),
    (
        'if stem == "hcf" ',
        f"""if stem == "port" {{
            let text = std::fs::read_to_string(&skeleton).unwrap().replace("::new(&DATA)", r#"::new(
                std::env::var_os("{OBJECT}").map_or(&DATA[..], |object| {{
                    &*std::fs::read(object).unwrap().leak()
                }})
            )"#);
            std::fs::write(&skeleton, text).unwrap();
        }}
        if stem == "hcf" """,
    ),
]
"""Make the build script a compiler of that file, and the agent open it."""

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
    for before, after in CHANGES:
        if text.count(before) != 1:
            raise RuntimeError(f"{BUILD_SCRIPT} must have once: {before}")
        text = text.replace(before, after)
    return text.encode()


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
        self.original = self.compile(self.sound)
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

    def check(self, name: str) -> None:
        """Runs a test program without a mutant, once.

        Raises:
            RuntimeError: It fails.
        """
        with self.checks:
            if name in self.seconds:
                return
            begun = time.monotonic()
            failed, printed = self.run(self.sound, name)
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

    def compile(self, place: Path) -> dict[str, bytes] | None:
        """Compiles the programs as they are now; their code, or None if they do not compile."""
        compiled = subprocess.run(
            [self.compiler],
            cwd=place / "crates" / "agent",
            env={**os.environ, OBJECT: str(place / NAME), "CARGO_CFG_TARGET_ARCH": "x86_64"},
            capture_output=True,
            check=False,
        )
        return None if compiled.returncode else code((place / NAME).read_bytes())

    def run(self, place: Path, name: str, test: str = "") -> tuple[str, str]:
        """Runs a test program, or one test of it, up to the first failure.

        Returns what failed, "" if nothing, and the output.

        Raises:
            Rejected: The verifier takes no changed program.
        """
        scratch = tempfile.mkdtemp(prefix="penstock-mutant-")
        # Mounts, processes and files of a test that is killed go with the namespaces.
        process = subprocess.Popen(
            [*NAMESPACES, self.programs[name], "--nocapture"] + (["--exact", test] if test else []),
            cwd=self.agent,
            env={**os.environ, **SPARING, OBJECT: str(place / NAME), "TMPDIR": scratch},
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
            if REJECTED in line and place != self.sound and name not in self.expect_rejection:
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
        now = self.compile(place)
        if now is None:
            return "not viable", "it does not compile"
        if now == self.original:
            return "same", "the compiler makes the same code of it"
        first = [killer.split() for killer, _ in earlier.most_common(3)]
        programs = list(dict.fromkeys([FOCUS.get(file, programs[0]), *programs]))
        try:
            for arguments in [*first, *([name] for name in programs)]:
                self.check(arguments[0])
                failed = self.run(place, *arguments)[0]
                if failed and arguments[0] not in CALM:
                    failed = self.run(place, *arguments)[0]
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
