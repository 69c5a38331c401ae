// SPDX-License-Identifier: Apache-2.0
//! The layout of the maps as their BTF describes it, pinned next to them: another version of penstockd finds
//! fields by name. The kernel has it too, but shows it to holders of CAP_SYS_ADMIN alone.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::btf::types::{Array, Int, MemberAttr, Struct};
use libbpf_rs::btf::{BtfType, HasSize};
use libbpf_rs::{AsRawLibbpf, Btf, MapCore, MapFlags, MapType, Object, libbpf_sys as sys};
use rustix::fs::MemfdFlags;

use super::maps::{create, open_map};
use crate::host::bpf::pin_over;

/// The pin: an array of one element, BTF as the kernel takes it.
const LAYOUT: &str = "layout";

/// Pins the layout of an object's maps in their folder.
///
/// # Errors
/// The kernel or the file system refuses.
pub fn pin(object: &Object, shared: &Path) -> Result<()> {
    // SAFETY: the object lives as long as the reference; libbpf gives a pointer to `size` bytes of it.
    let bytes = unsafe {
        let types = Btf::from_bpf_object(object.as_libbpf_object().as_ref())?;
        let types = types.context("the programs have no BTF")?;
        let mut size = 0;
        let data = sys::btf__raw_data(types.as_libbpf_object().as_ptr(), &raw mut size);
        std::slice::from_raw_parts(data.cast::<u8>(), size as usize)
    };
    let map = create(MapType::Array, LAYOUT, (4, bytes.len() as u32), 1)?;
    // Elements are padded to eight bytes.
    map.update(&0u32.to_ne_bytes(), bytes, MapFlags::ANY)?;
    pin_over(&map, &shared.join(LAYOUT))
}

/// The types of maps of any version.
pub struct Layout(Btf<'static>);

impl Layout {
    /// Reads the layout of the maps in a folder.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn open(shared: &Path) -> Result<Layout> {
        let map = open_map(&shared.join(LAYOUT))?;
        let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        let file = rustix::fs::memfd_create(LAYOUT, MemfdFlags::CLOEXEC)?;
        let mut file = File::from(file);
        file.write_all(&bytes.unwrap_or_default())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(Layout(Btf::from_path(path)?))
    }

    /// Where a field is in a struct: its name, or its path through structs.
    ///
    /// # Errors
    /// There is none.
    pub fn field(&self, of: &str, path: &[&str]) -> Result<Range<usize>> {
        let missing = || anyhow!("their struct {of} has no field {}", path.join("."));
        let mut at = self.0.type_by_name::<Struct<'_>>(of).map(|found| *found);
        let mut start = 0;
        for name in path {
            let outer = at.and_then(|outer| Struct::try_from(outer).ok());
            let outer = outer.ok_or_else(missing)?;
            let mut members = outer.iter();
            let member = members.find(|member| member.name.is_some_and(|found| found == *name));
            let member = member.ok_or_else(missing)?;
            let MemberAttr::Normal { offset } = member.attr else {
                return Err(missing());
            };
            start += offset as usize / 8;
            let of = self.0.type_by_id::<BtfType<'_>>(member.ty);
            at = of.map(|of| of.skip_mods_and_typedefs());
        }
        let size = at.and_then(size_of_type).ok_or_else(missing)?;
        Ok(start..start + size)
    }
}

fn size_of_type(of: BtfType<'_>) -> Option<usize> {
    if let Ok(array) = Array::try_from(of) {
        let element = array.contained_type().skip_mods_and_typedefs();
        return Some(array.capacity() * size_of_type(element)?);
    }
    Int::try_from(of).ok().map(|int| int.size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let [source, object] = ["a.c", "a.o"].map(|name| folder.path().join(name));
        let text = "typedef unsigned short u16;
            struct entry { char other; u16 mss; unsigned char scale[2], bits : 4; };
            struct port_flow { unsigned long long other; const struct entry entry; } flow;";
        std::fs::write(&source, text).unwrap();
        let mut clang = std::process::Command::new("clang");
        clang.args(["-target", "bpf", "-g", "-c", "-o"]);
        let status = clang.arg(&object).arg(&source).status().unwrap();
        assert!(status.success());
        let layout = Layout(Btf::from_path(&object).unwrap());
        let field = |path: &[&str]| layout.field("port_flow", path);
        assert_eq!(field(&["entry", "mss"]).unwrap(), 10..12);
        assert_eq!(field(&["entry", "scale"]).unwrap(), 12..14);
        let missing = field(&["entry", "phase"]).unwrap_err().to_string();
        assert_eq!(missing, "their struct port_flow has no field entry.phase");
        assert!(field(&["entry", "bits"]).is_err());
        assert!(field(&["entry"]).is_err());
        assert!(layout.field("flow_key4", &["port"]).is_err());
    }
}
