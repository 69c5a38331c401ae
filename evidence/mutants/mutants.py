# SPDX-License-Identifier: Apache-2.0
"""Changes core/ and bpf/ a little, one place at a time, and counts the changes that a test notices.

A mutant is one operator, constant, condition or statement that differs. It is killed if a test
fails or hangs, not viable if it does not compile (or the kernel's verifier rejects it), and has
survived otherwise. Mutants of core/ meet the tests of penstock-core first, which take seconds;
those that survive, and mutants of bpf/, meet the datapath's tests, which need root.

Results go to a journal, one JSON object per line, so that a run can be continued.
"""

import argparse
import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOURNAL = ROOT / "target" / "mutants.jsonl"

CORE = ["cargo", "test", "--quiet", "--package", "penstock-core", "--tests"]
DATAPATH = ["cargo", "test", "--quiet", "--package", "penstockd"]
DATAPATH += [word for name in ("vectors", "datapath", "shim", "fuzz") for word in ("--test", name)]

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

    @property
    def key(self) -> str:
        """The same for the same change of the same text."""
        return f"{self.file}:{self.before.strip()}:{self.column}:{self.after.strip()}"


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
        for number, line in code_lines((folder / file).read_text()):
            for rule, pattern, replacement in RULES:
                for match in re.finditer(pattern, line):
                    after = line[: match.start()] + replacement + line[match.end() :]
                    if rule == "condition":
                        after = line[: match.start()] + "if (!(" + line[match.end() :] + ")"
                    every.append(Mutant(file, number, match.start(), rule, line, after))
    return every


def sources(folder: Path) -> list[str]:
    """The files to change: without HCF's queue in the kernel, which takes another kernel to run."""
    found = [*folder.glob("core/*.h"), *folder.glob("bpf/*.h"), *folder.glob("bpf/*.c")]
    names = [str(path.relative_to(folder)) for path in found]
    return sorted(name for name in names if not name.startswith("bpf/hcf"))


def run(command: list[str], folder: Path, limit: float = TIME_LIMIT) -> tuple[int, str]:
    """The exit code, -1 after the time limit, and what was printed."""
    process = subprocess.Popen(
        command,
        cwd=folder,
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


def verdict(folder: Path, mutant: Mutant) -> tuple[str, str]:
    """`killed`, `survived` or `not viable`, and by which test or why."""
    suites = [CORE, DATAPATH] if mutant.file.startswith("core/") else [DATAPATH]
    for suite in suites:
        code, printed = run(suite, folder)
        if code == 0:
            continue
        if code == -1:
            return "killed", "time limit"
        failed = re.findall(r"^test (\S+) \.\.\. FAILED$|^---- (\S+) stdout", printed, flags=re.M)
        if "processed" in printed and "BEGIN PROG LOAD LOG" in printed:
            return "not viable", "the verifier rejects it"
        if not failed:
            return "not viable", "it does not compile"
        return "killed", failed[0][0] or failed[0][1]
    return "survived", ""


def judge(folder: Path, mutant: Mutant) -> dict[str, object]:
    """Runs the tests with one mutant in place."""
    path = folder / mutant.file
    text = path.read_text()
    lines = text.split("\n")
    original = lines[mutant.line - 1]
    # A comment at the end of the line stays out of the comparison, and goes from the mutant.
    lines[mutant.line - 1] = mutant.after
    path.write_text("\n".join(lines))
    try:
        result, why = verdict(folder, mutant)
    finally:
        path.write_text(text)
    return {
        **dataclasses.asdict(mutant),
        "original": original,
        "verdict": result,
        "why": why,
        "key": mutant.key,
    }


def copy_tree(folder: Path) -> None:
    """The repository's tracked files, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            # With new times, or a shared target folder would hold older builds for current.
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)


def report(results: list[dict[str, object]]) -> None:
    """The score by file, and every survivor."""
    by_file: dict[str, Counter[str]] = {}
    for result in results:
        by_file.setdefault(str(result["file"]), Counter())[str(result["verdict"])] += 1
    total: Counter[str] = Counter()
    print(f"{'file':<24}{'killed':>8}{'survived':>10}{'not viable':>12}{'score':>8}")
    for file, counts in [*sorted(by_file.items()), ("all", total)]:
        total += counts if file != "all" else Counter()
        judged = counts["killed"] + counts["survived"]
        score = f"{counts['killed'] / judged:.0%}" if judged else "-"
        row = f"{counts['killed']:>8}{counts['survived']:>10}{counts['not viable']:>12}{score:>8}"
        print(f"{file:<24}{row}")
    survivors = [result for result in results if result["verdict"] == "survived"]
    for result in sorted(survivors, key=lambda one: (str(one["file"]), str(one["line"]))):
        print(f"\n{result['file']}:{result['line']} ({result['rule']})")
        print(f"- {str(result['before']).strip()}\n+ {str(result['after']).strip()}")


def main() -> int:
    """Judges a sample of the mutants, and prints the score."""
    parser = argparse.ArgumentParser(
        description=str(__doc__).split("\n", maxsplit=1)[0],
        epilog="Example: mutants.py --sample 40 --seed 2 core/fairq.h core/hscc.h",
    )
    parser.add_argument(
        "files", nargs="*", help="as in core/fairq.h; default: all of core/ and bpf/"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="judge N at random; default: all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample; default: 1")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help=f"default: {JOURNAL.name}")
    parser.add_argument("--list", action="store_true", help="print the mutants and exit")
    arguments = parser.parse_args()
    known = sources(ROOT)
    for file in arguments.files:
        if file not in known:
            parser.error(f"{file}: no source of core/ or bpf/; there is {', '.join(known)}")
    chosen = mutants(ROOT, arguments.files or known)
    if arguments.sample is not None and arguments.sample < len(chosen):
        chosen = random.Random(arguments.seed).sample(chosen, arguments.sample)
    if arguments.list:
        for mutant in chosen:
            print(
                f"{mutant.file}:{mutant.line}: {mutant.before.strip()}  ->  {mutant.after.strip()}"
            )
        print(f"{len(chosen)} mutants")
        return 0
    arguments.journal.parent.mkdir(parents=True, exist_ok=True)
    journal = arguments.journal.read_text().splitlines() if arguments.journal.exists() else []
    done = {result["key"]: result for result in map(json.loads, journal)}
    with tempfile.TemporaryDirectory(prefix="penstock-mutants-") as scratch:
        folder = Path(scratch)
        copy_tree(folder)
        for suite in (CORE, DATAPATH):
            code, printed = run(suite, folder, limit=3600)  # builds all dependencies
            if code:
                print(
                    f"{' '.join(suite)} fails without a mutant:\n{printed[-2000:]}", file=sys.stderr
                )
                return 1
        for number, mutant in enumerate(chosen, 1):
            if mutant.key in done:
                continue
            result = judge(folder, mutant)
            done[mutant.key] = result
            with arguments.journal.open("a") as out:
                out.write(json.dumps(result) + "\n")
            place = f"{mutant.file}:{mutant.line}"
            print(
                f"{number}/{len(chosen)} {place}: {result['verdict']} {result['why']}", flush=True
            )
    report([done[mutant.key] for mutant in chosen])
    return 0


if __name__ == "__main__":
    sys.exit(main())
