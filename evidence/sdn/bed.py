# SPDX-License-Identifier: Apache-2.0
"""A scenario's fabric on Open vSwitch with a scheme, for programs that use it themselves."""

import contextlib
import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import _native, api
from penstock.execution.lab import fabric, plan, schemes, sicc, system
from penstock.scenario import load

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import netns


@dataclass(frozen=True)
class Bed:
    """What runs."""

    plan: plan.Plan
    tag: str
    controlled: sicc.Controlled

    def address(self, host: str) -> str:
        """The address of a host."""
        return self.plan.home[host].hosts[host]

    def namespace(self, host: str) -> str:
        """Where the host is."""
        return self.plan.name(self.plan.home[host].node, self.tag)

    def inside(self, host: str) -> contextlib.AbstractContextManager[None]:
        """This thread at the host, while the block runs; sockets stay there."""
        return netns.inside(self.namespace(host))


@contextlib.contextmanager
def running(scenario: str, scheme: str, overrides: dict[str, Any]) -> Iterator[Bed]:
    """The fabric with the scheme, while the block runs."""
    text = api.resolved(scenario, overrides=overrides)
    described = json.loads(_native.layout(text, str(load(scenario).origin), str))
    table = tomllib.loads(text)["scheme"][scheme]
    held = schemes.of(scheme, table, described["rtt_s"], with_ovs=True)
    made = plan.of(described, with_ovs=True)
    with (
        system.locked(),
        fabric.built(made) as tag,
        sicc.controlled(held, made, tag) as controlled,
    ):
        yield Bed(made, tag, controlled)
