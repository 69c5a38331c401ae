// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//! A scheme's parameters at one port, as C takes them.

use std::error::Error;
use std::fmt;

use crate::definitions::{Definition, Field, Param, Unit};
use crate::memory::Memory;

/// A value outside its parameter's range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParamError {
    /// The scheme's name.
    pub scheme: &'static str,
    /// The parameter's key.
    pub key: &'static str,
    /// The value given.
    pub value: f64,
    /// Least value allowed.
    pub min: f64,
    /// Greatest value allowed.
    pub max: f64,
}

impl fmt::Display for ParamError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParamError {
            scheme,
            key,
            value,
            min,
            max,
        } = self;
        write!(out, "{scheme}: {key} is {value}; allowed: {min} to {max}")
    }
}

impl Error for ParamError {}

/// The struct of a scheme's parameters at one port.
#[derive(Clone)]
pub struct Params {
    definition: &'static Definition,
    pub(crate) memory: Memory,
}

impl PartialEq for Params {
    fn eq(&self, other: &Params) -> bool {
        self.definition.name == other.definition.name && self.memory == other.memory
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.definition.params.iter();
        let fields = own.filter_map(|param| param.field);
        let all = self.definition.port.iter().copied().chain(fields);
        out.debug_map()
            .entries(all.map(|field| (field.name, self.field(field.name))))
            .finish()
    }
}

impl Params {
    /// What works on real TCP, for a port with so large a buffer: bytes, or packets for HCF.
    pub fn new(definition: &'static Definition, buffer: u32) -> Params {
        Params::preset(definition, buffer, false)
    }

    /// As printed in the paper.
    pub fn paper(definition: &'static Definition, buffer: u32) -> Params {
        Params::preset(definition, buffer, true)
    }

    fn preset(definition: &'static Definition, buffer: u32, is_paper: bool) -> Params {
        let mut preset = Memory::new(definition.params_bytes);
        if let Some(write) = definition.preset {
            // SAFETY: it is as large as the struct that is written.
            unsafe { write(preset.at_mut(0), buffer, is_paper.into()) };
        }
        Params::from_bytes(definition, preset.bytes())
    }

    /// Offset and bytes of each field.
    fn fields(definition: &'static Definition) -> impl Iterator<Item = (usize, usize)> {
        let port = definition
            .port
            .iter()
            .map(|field| (field.offset, field.bytes));
        let own = definition.params.iter().flat_map(|param| {
            let field = param.field.map(|field| (field.offset, field.bytes));
            let unit = field.filter(|_| param.unit == Unit::Amount);
            field
                .into_iter()
                .chain(unit.map(|(offset, bytes)| (offset + bytes, bytes)))
        });
        port.chain(own)
    }

    /// Reads the struct from its bytes, which may be longer.
    ///
    /// # Panics
    /// They are shorter than the struct.
    pub fn from_bytes(definition: &'static Definition, bytes: &[u8]) -> Params {
        // Field by field: C leaves the padding undefined, and equal parameters shall be equal bytes.
        let mut memory = Memory::new(definition.params_bytes);
        for (offset, size) in Params::fields(definition) {
            let field = offset..offset + size;
            memory.bytes_mut()[field.clone()].copy_from_slice(&bytes[field]);
        }
        Params { definition, memory }
    }

    /// The struct, byte by byte.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.definition.params_bytes]
    }

    /// What they are the parameters of.
    pub fn definition(&self) -> &'static Definition {
        self.definition
    }

    fn param(&self, key: &str) -> (&'static Param, Field) {
        let name = self.definition.name;
        let param = self.definition.param(key);
        param
            .and_then(|param| Some((param, param.field?)))
            .unwrap_or_else(|| panic!("the algorithm of {name} has no parameter {key}"))
    }

    /// Sets a parameter to a value of its unit; an amount is one of packets.
    ///
    /// # Errors
    /// The value is outside the range.
    ///
    /// # Panics
    /// The scheme's algorithm has no such parameter.
    pub fn set(&mut self, key: &str, value: f64) -> Result<(), ParamError> {
        let (param, field) = self.param(key);
        if !param.allows(value) {
            return Err(ParamError {
                scheme: self.definition.name,
                key: param.key,
                value,
                min: param.min,
                max: param.max,
            });
        }
        let raw = self.raw(param.unit, value);
        self.memory.set(field.offset, field.bytes, raw);
        if param.unit == Unit::Amount {
            self.memory.set(field.offset + field.bytes, field.bytes, 0);
        }
        Ok(())
    }

    /// Sets an amount in bytes.
    ///
    /// # Errors
    /// As [`Params::set`].
    ///
    /// # Panics
    /// As [`Params::set`], or the parameter is no amount.
    pub fn set_in_bytes(&mut self, key: &str, bytes: f64) -> Result<(), ParamError> {
        let (param, field) = self.param(key);
        assert_eq!(param.unit, Unit::Amount, "{key}");
        self.set(key, bytes)?;
        self.memory.set(field.offset + field.bytes, field.bytes, 1);
        Ok(())
    }

    /// A value as its field holds it (`PARAM_RAW_UNIT` of `core/params.h`).
    fn raw(&self, unit: Unit, value: f64) -> u64 {
        // A small share is no bytes, which would mean another thing.
        let share = |value: f64| {
            let bytes = (self.field("buffer_bytes") as f64 * value) as u32;
            bytes.max((value > 0.0).into())
        };
        match unit {
            Unit::Time | Unit::Rate => value as u64,
            Unit::Share => ((value * 65536.0 + 0.5) as u32).into(),
            Unit::BufferShare => share(value).into(),
            Unit::BufferLimit if value >= 1.0 => 0,
            Unit::BufferLimit => share(value).into(),
            Unit::SegmentBytes => u64::from(value as u32) * self.field("mss_bytes"),
            Unit::Segments | Unit::Count | Unit::Amount | Unit::Flag | Unit::Enum => {
                (value as u32).into()
            }
        }
    }

    /// Where a field lies: one about the port, a parameter, or the unit of an amount.
    fn place(&self, name: &str) -> (usize, usize) {
        let params = self.definition.params.iter();
        let fields = params.filter_map(|param| param.field);
        let field = fields
            .chain(self.definition.port.iter().copied())
            .find(|field| field.name == name)
            .map(|field| (field.offset, field.bytes));
        let unit = || {
            let amount = self
                .definition
                .param(name.strip_suffix("_in_bytes")?)?
                .field?;
            Some((amount.offset + amount.bytes, amount.bytes))
        };
        field
            .or_else(unit)
            .unwrap_or_else(|| panic!("struct {}_params has no field {name}", self.definition.name))
    }

    /// The value of a field as C has it.
    ///
    /// # Panics
    /// The struct has no such field.
    pub fn field(&self, name: &str) -> u64 {
        let (offset, bytes) = self.place(name);
        self.memory.get(offset, bytes)
    }

    /// Sets a field as C has it, in its range or not.
    ///
    /// # Panics
    /// As [`Params::field`].
    pub fn set_field(&mut self, name: &str, value: u64) {
        let (offset, bytes) = self.place(name);
        self.memory.set(offset, bytes, value);
    }
}
