// SPDX-License-Identifier: Apache-2.0
//! What tests of the datapath share.

#![allow(dead_code)]

pub mod cpus;
pub mod packet;
pub mod run;
