# SPDX-License-Identifier: Apache-2.0
"""Changes core/ and bpf/ a little, one place at a time, and counts the changes that a test notices.

A mutant is one operator, constant, condition or statement that differs. It is killed if a test
fails or hangs, not viable if it does not compile (or the kernel's verifier rejects it), the same if
the compiler makes the same code of it, and has survived otherwise. Mutants of core/ meet the tests
of penstock-core first, which take seconds; those that survive, and mutants of bpf/ (datapath.py),
meet the datapath's tests, which need root.

Results go to a journal, one JSON object per line, so that a run can be continued. A verdict counts
while the datapath and its tests are as they were (`JUDGED_BY`).
"""

import argparse
import dataclasses
import hashlib
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from datapath import TESTS, Datapath, adapted

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target"
FOLDER = TARGET / "mutants"
"""A copy of the repository, so that edits do not disturb a run, nor a run them."""
JOURNAL = TARGET / "mutants.jsonl"

CORE = ["cargo", "test", "--quiet", "--package", "penstock-core", "--tests"]
DATAPATH = ["cargo", "test", "--quiet", "--package", "penstockd"]
DATAPATH += [word for name in ("vectors", "datapath", "shim", "fuzz") for word in ("--test", name)]

JUDGED_BY = ["core", "bpf", "crates/core", "crates/agent", "crates/linux", "tests", "Cargo.lock"]
"""The files on which verdicts depend: what is changed, the programs that use it, and the tests."""

NOT_BUILT = ("error: could not compile", "error: failed to run custom build command")
"""What cargo prints where a mutant does not compile; the build scripts compile C."""

TIME_LIMIT = 600
"""Seconds for the tests of one mutant; more is a hang, which kills it."""

# (name, pattern, replacement): one mutant for each match. Binary operators have a space on both
# sides, which keeps pointers and types out.
RULES: list[tuple[str, str, str]] = [
    ("relation", r" < ", " <= "),
    ("relation", r" <= ", " < "),
    ("relation", r" > ", " >= "),
    ("relation", r" >= ", " > "),
    ("relation", r" == ", " != "),
    ("relation", r" != ", " == "),
    ("logic", r" && ", " || "),
    ("logic", r" \|\| ", " && "),
    ("arithmetic", r" \+ ", " - "),
    ("arithmetic", r" - ", " + "),
    ("arithmetic", r" << ", " >> "),
    ("arithmetic", r" >> ", " << "),
    ("arithmetic", r" \+= ", " -= "),
    ("arithmetic", r" -= ", " += "),
    ("bits", r" & ", " | "),
    ("bits", r" \| ", " & "),
    ("bits", r" \|= ", " = "),
    ("condition", r"\bif \((?=.*\)$)", "if (!"),
    ("constant", r"(?<=[ (])0(?=[;,) ])", "1"),
    ("constant", r"(?<=[ (])1(?=[;,) ])", "0"),
    ("minimum", r"\bmin_u32\(", "max_u32("),
    ("minimum", r"\bmax_u32\(", "min_u32("),
    ("statement", r"(?<=\t)[a-z_>.\-\[\]]+ [-+|]?= [^;]*;$", ";"),
    ("statement", r"(?<=\t)[a-z_0-9]+\([^;]*\);$", ";"),
]


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: the file, its line (from 1), the column, the rule, and the line as it becomes."""

    file: str
    line: int
    column: int
    rule: str
    before: str
    after: str
    number: int
    """From 1, among equal lines of the file."""

    @property
    def key(self) -> str:
        """The same for the same change of the same text, although its line moves."""
        change = f"{self.before.strip()}:{self.column}:{self.after.strip()}"
        return f"{self.file}:{change}:{self.number}"


def code_lines(text: str) -> list[tuple[int, str]]:
    """Lines of functions: without comments, the preprocessor, tables and assertions."""
    blank = re.sub(r"/\*.*?\*/", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.S)
    continued = False
    lines = []
    for number, line in enumerate(blank.split("\n"), 1):
        is_macro = continued or line.startswith("#")
        continued = is_macro and line.endswith("\\")
        if (
            not is_macro
            and line.startswith("\t")
            and "_Static_assert" not in line
            and '"' not in line
        ):
            lines.append((number, line.rstrip()))
    return lines


def mutants(folder: Path, files: list[str]) -> list[Mutant]:
    """All mutants of some files, in their order."""
    every = []
    for file in files:
        equal: Counter[str] = Counter()
        for number, line in code_lines((folder / file).read_text()):
            equal[line] += 1
            for rule, pattern, replacement in RULES:
                for match in re.finditer(pattern, line):
                    after = line[: match.start()] + replacement + line[match.end() :]
                    if rule == "condition":
                        after = line[: match.start()] + "if (!(" + line[match.end() :] + ")"
                    place = (file, number, match.start(), rule)
                    every.append(Mutant(*place, line, after, equal[line]))
    return every


def sources(folder: Path) -> list[str]:
    """The files to change.

    Without HCF's queue in the kernel, which takes another kernel to run, and what only declares:
    layouts of the agent's and of the kernel's.
    """
    found = [*folder.glob("core/*.h"), *folder.glob("bpf/*.h"), *folder.glob("bpf/*.c")]
    names = {str(path.relative_to(folder)) for path in found}
    declared = {"bpf/abi.h", "bpf/grant_abi.h", "bpf/kernel.h", "bpf/maps.h"}
    return sorted(name for name in names - declared if not name.startswith("bpf/hcf"))


def run(command: list[str], folder: Path, limit: float = TIME_LIMIT) -> tuple[int, str]:
    """The exit code, -1 after the time limit, and what was printed."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return -1, "time limit"
    return process.returncode, printed


def verdict_of_core(folder: Path) -> tuple[str, str]:
    """`killed`, `survived` or `not viable`, and by which test or why."""
    for suite in (CORE, DATAPATH):
        code, printed = run(suite, folder)
        if code == 0:
            continue
        if code == -1:
            return "killed", "time limit"
        failed = re.findall(r"^test (\S+) \.\.\. FAILED$|^---- (\S+) stdout", printed, flags=re.M)
        if "processed" in printed and "BEGIN PROG LOAD LOG" in printed:
            return "not viable", "the verifier rejects it"
        if failed:
            return "killed", failed[0][0] or failed[0][1]
        if any(line in printed for line in NOT_BUILT):
            return "not viable", "it does not compile"
        if "error: test failed" not in printed:
            raise RuntimeError(f"{' '.join(suite)} could not run:\n{printed[-2000:]}")
        signalled = re.search(r"signal: \d+, SIG\w+", printed)
        return "killed", signalled[0] if signalled else f"exit code {code}"
    return "survived", ""


def is_survivor(result: dict[str, object]) -> bool:
    """Whether it is of a mutant that no test noticed."""
    return result["verdict"] == "survived"


def is_killed(result: dict[str, object], file: str) -> bool:
    """Whether it is of a mutant of the file that a test killed."""
    return result["file"] == file and result["verdict"] == "killed"


def judge(
    folder: Path,
    mutant: Mutant,
    datapath: Datapath | None,
    tests: list[str],
    done: list[dict[str, object]],
) -> dict[str, object]:
    """Runs the tests with one mutant in place, in a folder of its own."""
    path = folder / mutant.file
    text, times = path.read_text(), path.stat()
    lines = text.split("\n")
    original = lines[mutant.line - 1]
    # A comment at the end of the line stays out of the comparison, and goes from the mutant.
    lines[mutant.line - 1] = mutant.after
    path.write_text("\n".join(lines))
    try:
        if datapath and mutant.file.startswith("bpf/"):
            killers = (str(one["why"]) for one in done if is_killed(one, mutant.file))
            result, why = datapath.verdict(folder, mutant.file, Counter(killers), tests)
        else:
            result, why = verdict_of_core(folder)
    finally:
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # or cargo builds again
    return {
        **dataclasses.asdict(mutant),
        "original": original,
        "verdict": result,
        "why": why,
        "key": mutant.key,
    }


def tracked(*paths: str) -> list[str]:
    """The repository's tracked files in some of its folders, or all."""
    command = ["git", "ls-files", "-z", "--", *paths]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return list(filter(None, listed.stdout.split("\0")))


def digest(root: Path, names: list[str]) -> str:
    """Of the names and contents of files, as they are now."""
    total = hashlib.sha256()
    for name in sorted(names):
        path = root / name
        content = path.read_bytes() if path.is_file() else b""
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def copy_tree(folder: Path) -> None:
    """The repository's tracked files, as they are now."""
    for name in tracked():
        source, copy = ROOT / name, folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            copy.unlink(missing_ok=True)
            copy.symlink_to(source.readlink())
        elif source.exists():
            content = adapted(name, source.read_bytes())
            # What is the same keeps its time, and need not be built again.
            if not copy.exists() or copy.read_bytes() != content:
                copy.write_bytes(content)
                copy.chmod(source.stat().st_mode)


def report(results: list[dict[str, object]]) -> None:
    """The score by file, and every survivor."""
    by_file: dict[str, Counter[str]] = {}
    for result in results:
        by_file.setdefault(str(result["file"]), Counter())[str(result["verdict"])] += 1
    total: Counter[str] = Counter()
    verdicts = ("killed", "survived", "same", "not viable")
    print(f"{'file':<24}" + "".join(f"{verdict:>12}" for verdict in verdicts) + "   score")
    for file, counts in [*sorted(by_file.items()), ("all", total)]:
        total += counts if file != "all" else Counter()
        judged = counts["killed"] + counts["survived"]
        score = f"{counts['killed'] / judged:.0%}" if judged else "-"
        row = "".join(f"{counts[verdict]:>12}" for verdict in verdicts)
        print(f"{file:<24}{row}{score:>8}")
    survivors = filter(is_survivor, results)
    for result in sorted(survivors, key=lambda one: (str(one["file"]), str(one["line"]))):
        print(f"\n{result['file']}:{result['line']} ({result['rule']})")
        print(f"- {str(result['before']).strip()}\n+ {str(result['after']).strip()}")


def parse_arguments(known: list[str]) -> argparse.Namespace:
    """The command line; `known` are the files that may be changed."""
    parser = argparse.ArgumentParser(
        description=str(__doc__).split("\n", maxsplit=1)[0],
        epilog="Example: mutants.py --sample 40 --seed 2 core/fairq.h core/hscc.h",
    )
    parser.add_argument(
        "files", nargs="*", help="as in core/fairq.h, or a folder; default: all of core/ and bpf/"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="judge N at random; default: all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample; default: 1")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help=f"default: {JOURNAL.name}")
    parser.add_argument("--again", action="store_true", help="judge the journal's survivors again")
    parser.add_argument(
        "--tests", nargs="+", choices=TESTS, default=TESTS, help="for mutants of bpf/; default: all"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants of bpf/ at once; default: 2")
    parser.add_argument("--list", action="store_true", help="print the mutants and exit")
    arguments = parser.parse_args()
    files = []
    for file in arguments.files or ["core", "bpf"]:
        matching = [name for name in known if name == file or name.startswith(f"{file}/")]
        if not matching:
            parser.error(f"{file}: no source of core/ or bpf/; there is {', '.join(known)}")
        files += matching
    arguments.files = files
    return arguments


def prepare(chosen: list[Mutant]) -> Datapath | None:
    """Builds the tests that the mutants need, and runs those of core/ without one."""
    copy_tree(FOLDER)
    if any(mutant.file.startswith("core/") for mutant in chosen):
        for suite in (CORE, DATAPATH):
            code, printed = run(suite, FOLDER, limit=3600)  # builds all dependencies
            if code:
                sys.exit(f"{' '.join(suite)} fails without a mutant:\n{printed[-2000:]}")
    if any(mutant.file.startswith("bpf/") for mutant in chosen):
        return Datapath(FOLDER, TARGET)
    return None


def judge_all(
    chosen: list[Mutant], done: dict[str, dict[str, object]], arguments: argparse.Namespace
) -> None:
    """Judges those that are not done with today's code and tests, several of bpf/ at once."""
    judged_by = digest(ROOT, tracked(*JUDGED_BY))
    datapath = prepare(chosen)
    places: queue.Queue[Path] = queue.Queue()
    for number in range(arguments.jobs):
        places.put(datapath.place(str(number)) if datapath else FOLDER)
    journal_lock, core_lock = threading.Lock(), threading.Lock()

    def judge_one(numbered: tuple[int, Mutant]) -> None:
        number, mutant = numbered
        place = places.get()
        if mutant.file.startswith("bpf/"):
            result = judge(place, mutant, datapath, arguments.tests, list(done.values()))
        else:
            with core_lock:
                result = judge(FOLDER, mutant, None, [], [])
        result["digest"] = judged_by
        places.put(place)
        with journal_lock:
            done[mutant.key] = result
            with arguments.journal.open("a") as out:
                out.write(json.dumps(result) + "\n")
            where, why = f"{mutant.file}:{mutant.line}", f"{result['verdict']} {result['why']}"
            print(f"{number}/{len(chosen)} {where}: {why}", flush=True)

    to_judge = [
        (number, mutant)
        for number, mutant in enumerate(chosen, 1)
        if arguments.again or done.get(mutant.key, {}).get("digest") != judged_by
    ]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(judge_one, to_judge))


def main() -> int:
    """Judges a sample of the mutants, and prints the score."""
    arguments = parse_arguments(sources(ROOT))
    arguments.journal.parent.mkdir(parents=True, exist_ok=True)
    journal = arguments.journal.read_text().splitlines() if arguments.journal.exists() else []
    done = {result["key"]: result for result in map(json.loads, journal)}
    chosen = mutants(ROOT, arguments.files)
    if arguments.again:
        # Not those of a sample, which is another one once a line has changed.
        chosen = [it for it in chosen if it.key in done and is_survivor(done[it.key])]
    elif arguments.sample is not None and arguments.sample < len(chosen):
        chosen = random.Random(arguments.seed).sample(chosen, arguments.sample)
    if arguments.list:
        for mutant in chosen:
            print(
                f"{mutant.file}:{mutant.line}: {mutant.before.strip()}  ->  {mutant.after.strip()}"
            )
        print(f"{len(chosen)} mutants")
        return 0
    judge_all(chosen, done, arguments)
    report([done[mutant.key] for mutant in chosen])
    return 0


if __name__ == "__main__":
    sys.exit(main())
