# SPDX-License-Identifier: Apache-2.0
"""Which options of `penstock reproduce` go together, checked before anything slow is loaded."""

from collections.abc import Mapping

from penstock.errors import ScenarioError


def nothing_runs(option: str, others: Mapping[str, object]) -> None:
    """Refuses what would have to be run.

    Args:
        option: with which nothing is run.
        others: what may be given with it, by name; None and False are not given.

    Raises:
        ScenarioError: one of the others is given.
    """
    if given := _first(others):
        message = f"{given}: nothing is run with {option}; leave one of the two out"
        raise ScenarioError(message)


def recordable(shortening: Mapping[str, object]) -> None:
    """Refuses to record anything but whole experiments; `shortening` are the options for others.

    Raises:
        ScenarioError: an option shortens them.
    """
    if given := _first(shortening):
        message = f"{given}: --record keeps whole experiments only; leave one of the two out"
        raise ScenarioError(message)


def goes_with_open(
    others: Mapping[str, object], sampling: Mapping[str, object], *, recorded: bool
) -> None:
    """Refuses options that do not go with `--open`, and those of sampling where nothing is run.

    Raises:
        ScenarioError: one is given; the message names it.
    """
    if recorded:
        nothing_runs("--recorded", sampling)
    if given := _first(others):
        message = f"{given}: does not go with --open; leave one of the two out"
        raise ScenarioError(message)


def only_with_open(others: Mapping[str, object]) -> None:
    """Refuses options that mean nothing without `--open`.

    Raises:
        ScenarioError: one is given; the message names it.
    """
    if given := _first(others):
        message = f"{given}: is for --open"
        raise ScenarioError(message)


def _first(given: Mapping[str, object]) -> str:
    return next((name for name, value in given.items() if value not in (None, False)), "")
