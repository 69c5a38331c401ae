// SPDX-License-Identifier: Apache-2.0
//! What the types cannot refuse.

use super::Scenario;
use super::document::Node;
use super::error::Problem;

/// Everything that cannot be run, in the order of the file's sections.
pub(super) fn check(_scenario: &Scenario, _root: &Node) -> Vec<Problem> {
    Vec::new()
}
