// SPDX-License-Identifier: Apache-2.0
//! penstockd.
mod port {
    include!(concat!(env!("OUT_DIR"), "/port.skel.rs"));
}
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
fn main() -> anyhow::Result<()> {
    let mut object = std::mem::MaybeUninit::uninit();
    let open = port::PortSkelBuilder::default().open(&mut object)?;
    let skel = open.load()?;
    println!("loaded {:?}", skel.progs.fairq_egress.name());
    Ok(())
}
