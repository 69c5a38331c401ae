// SPDX-License-Identifier: Apache-2.0
//! Enumerations whose variant is named by a key `kind`.

/// Derives `Deserialize` for an enumeration of newtype variants, one name each. Serde's own
/// `tag = "kind"` would copy the table first and so lose where its values were written.
macro_rules! kinds {
    ($type:ident { $($name:literal => $variant:ident),* $(,)? }) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                use serde::de::{EnumAccess, VariantAccess};
                #[derive(serde::Deserialize)]
                enum Kind { $(#[serde(rename = $name)] $variant),* }
                struct Reader;
                impl<'de> serde::de::Visitor<'de> for Reader {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a table with a key \"kind\"")
                    }
                    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<$type, A::Error> {
                        let (kind, body) = access.variant::<Kind>()?;
                        match kind {
                            $(Kind::$variant => body.newtype_variant().map($type::$variant)),*
                        }
                    }
                }
                deserializer.deserialize_enum($crate::de::TAGGED, &[$($name),*], Reader)
            }
        }
    };
}

pub(super) use kinds;
