# SPDX-License-Identifier: Apache-2.0
"""The command `penstock`: what each command takes, and what it prints.

    program     the list of all commands, and how errors become one line and an exit code
    options     options that several commands take
    init, imports, run, compare, sweep, tune, report, export, open, lists, show  the commands
    lab, fleet, controller  commands of the laboratory, of many hosts, and of the other program

Help must be quick, so a command imports the packages that do its work when it is called; such an
import has a comment with the reason.
"""

from penstock.cli.program import app, main

__all__ = ["app", "main"]
