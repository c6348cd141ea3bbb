//! The macros by which a type says what is saved of it, field by field.
//!
//! Both take the type apart without `..`: a field that is not named does not compile, so that a new one
//! cannot be forgotten.

/// Implements [`Stateful`](crate::checkpoint::Stateful): each field is one of
///
/// | word | field |
/// |---|---|
/// | `saved` | plain data: made anew |
/// | `sized` | a list of plain data whose length the configuration gives |
/// | `parts` | something with state of its own, loaded in place |
/// | `kept` | follows from the configuration, or is empty between two events: not saved |
macro_rules! state {
    ($name:ident $(<$of:ident: $bound:ident>)? { $($kind:ident: $($field:ident),+);+ $(;)? }) => {
        impl$(<$of: $bound>)? $crate::checkpoint::Stateful for $name$(<$of>)? {
            fn save(&self, out: &mut $crate::checkpoint::StateWriter) {
                let Self { $($($field,)+)+ } = self;
                $($($crate::checkpoint::state!(@save $kind $field out);)+)+
            }

            fn load(
                &mut self,
                from: &mut $crate::checkpoint::StateReader<'_>,
            ) -> Result<(), $crate::checkpoint::LoadFault> {
                let Self { $($($field,)+)+ } = self;
                $($($crate::checkpoint::state!(@load $kind $field from);)+)+
                Ok(())
            }
        }
    };
    (@save saved $field:ident $out:ident) => { $crate::checkpoint::Storable::save($field, $out) };
    (@save sized $field:ident $out:ident) => { $crate::checkpoint::save_sized(&$field[..], $out) };
    (@save parts $field:ident $out:ident) => { $crate::checkpoint::Stateful::save($field, $out) };
    (@save kept $field:ident $out:ident) => { let _ = ($field, &$out); };
    (@load saved $field:ident $from:ident) => {
        *$field = $crate::checkpoint::Storable::read($from).map_err(|fault| fault.within(stringify!($field)))?
    };
    (@load sized $field:ident $from:ident) => {
        $crate::checkpoint::load_sized(&mut $field[..], $from).map_err(|fault| fault.within(stringify!($field)))?
    };
    (@load parts $field:ident $from:ident) => {
        $crate::checkpoint::Stateful::load($field, $from).map_err(|fault| fault.within(stringify!($field)))?
    };
    (@load kept $field:ident $from:ident) => { let _ = ($field, &$from); };
}

/// Implements [`Storable`](crate::checkpoint::Storable) of a struct with these fields, of one around another
/// value, or of an enum with these variants.
macro_rules! value {
    (record $name:ident $(<$of:ident: $bound:ident>)? { $($field:ident),* $(,)? }) => {
        impl$(<$of: $bound>)? $crate::checkpoint::Storable for $name$(<$of>)? {
            fn save(&self, out: &mut $crate::checkpoint::StateWriter) {
                let Self { $($field),* } = self;
                let _ = &out;
                $($crate::checkpoint::Storable::save($field, out);)*
            }

            fn read(
                from: &mut $crate::checkpoint::StateReader<'_>,
            ) -> Result<Self, $crate::checkpoint::LoadFault> {
                let _ = &from;
                Ok(Self {
                    $($field: $crate::checkpoint::Storable::read(from)
                        .map_err(|fault| fault.within(stringify!($field)))?),*
                })
            }
        }
    };
    (wrapper $name:ident) => {
        impl $crate::checkpoint::Storable for $name {
            fn save(&self, out: &mut $crate::checkpoint::StateWriter) {
                $crate::checkpoint::Storable::save(&self.0, out);
            }

            fn read(
                from: &mut $crate::checkpoint::StateReader<'_>,
            ) -> Result<Self, $crate::checkpoint::LoadFault> {
                $crate::checkpoint::Storable::read(from).map($name)
            }
        }
    };
    (choice $name:ident $(<$of:ident: $bound:ident>)? {
        $($variant:ident $({ $($field:ident),* $(,)? })? $(($($item:ident),*))?),+ $(,)?
    }) => {
        const _: () = {
            #[allow(clippy::enum_variant_names, reason = "as the enum itself")]
            enum Tag { $($variant),+ }

            impl$(<$of: $bound>)? $crate::checkpoint::Storable for $name$(<$of>)? {
                fn save(&self, out: &mut $crate::checkpoint::StateWriter) {
                    match self {
                        $(Self::$variant $({ $($field),* })? $(($($item),*))? => {
                            out.bytes(&[Tag::$variant as u8]);
                            $($($crate::checkpoint::Storable::save($field, out);)*)?
                            $($($crate::checkpoint::Storable::save($item, out);)*)?
                        })+
                    }
                }

                fn read(
                    from: &mut $crate::checkpoint::StateReader<'_>,
                ) -> Result<Self, $crate::checkpoint::LoadFault> {
                    let tag = from.bytes(1)?[0];
                    $(if tag == Tag::$variant as u8 {
                        $($(let $field = $crate::checkpoint::Storable::read(from)
                            .map_err(|fault| fault.within(stringify!($variant)))?;)*)?
                        $($(let $item = $crate::checkpoint::Storable::read(from)
                            .map_err(|fault| fault.within(stringify!($variant)))?;)*)?
                        return Ok(Self::$variant $({ $($field),* })? $(($($item),*))?);
                    })+
                    Err($crate::checkpoint::LoadFault::new(format!("{tag} names no {}", stringify!($name))))
                }
            }
        };
    };
}

pub(crate) use {state, value};
