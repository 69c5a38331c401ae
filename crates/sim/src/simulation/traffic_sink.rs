// SPDX-License-Identifier: Apache-2.0
//! Where traffic is scheduled.

use super::{Action, Datagrams, Generator, JobRow, Transfer};
use penstock_scenario::units::Time;

/// Makes transfers and datagrams at their times: the simulation, or sockets of a kernel.
pub trait TrafficSink {
    /// Adds a client that makes `transfers` transfers, the `number`th of its profile; returns its
    /// index, for [`Action::Begin`] and [`Action::Stop`].
    fn add_client(&mut self, profile: u32, number: u32, transfer: Transfer, transfers: u32) -> u32;

    /// Adds a generator whose transfers follow profile number `profile`.
    fn add_generator(&mut self, profile: u32, generator: Box<dyn Generator>);

    /// Adds jobs that follow each other.
    fn add_jobs(&mut self, row: JobRow);

    /// Adds a source of datagrams from one host to another, whose first is due a gap after `start`.
    fn add_datagrams(&mut self, source: u32, destination: u32, start: Time, datagrams: Datagrams);

    /// Adds something to be done at `time`.
    fn at(&mut self, time: Time, action: Action);
}
