// SPDX-License-Identifier: Apache-2.0
//! The stand-ins on a node, attached as Cilium attaches its programs: by links, each at the end of its
//! hook, or as filters of clsact.

use std::mem::MaybeUninit;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder, libbpf_sys as sys};
use penstock_linux::link;
use penstock_linux::netns::NetNs;

use super::cluster::{CONTAINER, OVERLAY, Pair, Routing, UPLINK, host, pod};
use super::skel::types::run_counts;
use super::skel::{CiliumSkel, CiliumSkelBuilder};

/// How a node is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Of the node, 1 or 2.
    pub number: u8,
    pub pair: Pair,
    pub routing: Routing,
    /// Towards the other node, the pod has the address of its node.
    pub masquerades: bool,
}

impl Setup {
    /// The number of the other node.
    pub fn other(self) -> u8 {
        3 - self.number
    }
}

pub struct Cilium {
    setup: Setup,
    skel: CiliumSkel<'static>,
    links: Vec<OwnedFd>,
}

fn index(netns: &NetNs, interface: &str) -> u32 {
    netns.run(|| link::get(interface)).unwrap().unwrap().index
}

fn load(netns: &NetNs, setup: Setup) -> CiliumSkel<'static> {
    let wire = |address: Ipv4Addr| u32::from_ne_bytes(address.octets());
    let (own, other) = (setup.number, setup.other());
    libbpf_rs::set_print(None); // a clsact that is there already
    let object = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = CiliumSkelBuilder::default().open(object).unwrap();
    let settings = open.maps.rodata_data.as_deref_mut().unwrap();
    settings.routing = setup.routing as u32;
    settings.uplink = index(netns, UPLINK);
    settings.container = index(netns, CONTAINER);
    if setup.routing == Routing::Vxlan {
        settings.overlay = index(netns, OVERLAY);
    }
    (settings.pod, settings.other_pod) = (wire(pod(own)), wire(pod(other)));
    (settings.node, settings.other_node) = (wire(host(own)), wire(host(other)));
    settings.identity = 40_000 + u32::from(own);
    settings.masquerades = u32::from(setup.masquerades);
    open.load().unwrap()
}

impl Cilium {
    /// Loads and attaches the programs.
    pub fn start(netns: &NetNs, setup: Setup) -> Cilium {
        let mut cilium = Cilium {
            setup,
            skel: load(netns, setup),
            links: Vec::new(),
        };
        cilium.restart(netns);
        cilium
    }

    /// The programs, where they are attached, those of the card last.
    fn programs(&self) -> Vec<(BorrowedFd<'_>, &'static str, sys::bpf_attach_type)> {
        let all = &self.skel.progs;
        let tcx = [sys::BPF_TCX_INGRESS, sys::BPF_TCX_EGRESS];
        let [from, to] = match self.setup.pair {
            Pair::Veth => tcx,
            Pair::Netkit => [sys::BPF_NETKIT_PEER, sys::BPF_NETKIT_PRIMARY],
        };
        let mut programs = vec![
            (all.cil_from_container.as_fd(), CONTAINER, from),
            (all.cil_to_container.as_fd(), CONTAINER, to),
        ];
        if self.setup.routing == Routing::Vxlan {
            programs.extend([
                (all.cil_from_overlay.as_fd(), OVERLAY, tcx[0]),
                (all.cil_to_overlay.as_fd(), OVERLAY, tcx[1]),
            ]);
        }
        programs.extend([
            (all.cil_from_netdev.as_fd(), UPLINK, tcx[0]),
            (all.cil_to_netdev.as_fd(), UPLINK, tcx[1]),
        ]);
        programs
    }

    /// Removes the links and makes new ones.
    pub fn restart(&mut self, netns: &NetNs) {
        self.links.clear();
        let attach = |(program, interface, kind): (BorrowedFd<'_>, &str, _)| {
            let index = index(netns, interface);
            netns.run(|| create_link(program, index, kind)).unwrap()
        };
        self.links = self.programs().into_iter().map(attach).collect();
    }

    /// Loads the programs once more and puts them into the links.
    pub fn upgrade(&mut self, netns: &NetNs) {
        self.skel = load(netns, self.setup);
        for ((program, ..), link) in self.programs().into_iter().zip(&self.links) {
            let (link, program) = (link.as_raw_fd(), program.as_raw_fd());
            // SAFETY: both descriptors are valid, and no options are passed.
            let status = unsafe { sys::bpf_link_update(link, program, std::ptr::null()) };
            assert_eq!(status, 0);
        }
    }

    /// Attaches the card's programs as filters instead, with Cilium's priority and handle; repeated, it
    /// replaces these.
    pub fn use_filters(&mut self, netns: &NetNs) {
        let (links, all) = (self.programs().len() - 2, &self.skel.progs);
        let index = index(netns, UPLINK) as i32;
        for (program, point) in [
            (all.cil_from_netdev.as_fd(), TC_INGRESS),
            (all.cil_to_netdev.as_fd(), TC_EGRESS),
        ] {
            let attach = || {
                let mut hook: TcHook = TcHookBuilder::new(program)
                    .ifindex(index)
                    .replace(true)
                    .handle(1)
                    .priority(1)
                    .hook(point);
                let _ = hook.create(); // it may be there
                hook.attach().map(drop)
            };
            netns.run(attach).unwrap().unwrap();
        }
        self.links.truncate(links);
    }

    /// How often each program ran since it was loaded.
    pub fn runs(&self) -> run_counts {
        let data = self.skel.maps.bss_data.as_deref().unwrap();
        // SAFETY: mapped as long as the object lives; the programs alone write to it.
        unsafe { std::ptr::read_volatile(&raw const data.runs) }
    }
}

/// Attaches a program at the end of a hook.
fn create_link(program: BorrowedFd<'_>, index: u32, kind: sys::bpf_attach_type) -> OwnedFd {
    // SAFETY: a valid descriptor, and no options; the new descriptor is ours.
    unsafe {
        let program = program.as_raw_fd();
        let fd = sys::bpf_link_create(program, index as i32, kind, std::ptr::null());
        assert!(fd >= 0, "{}", std::io::Error::from_raw_os_error(-fd));
        OwnedFd::from_raw_fd(fd)
    }
}
