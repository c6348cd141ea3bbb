//! Macros with which a type lists its fields, and says of each whether and how it is saved.
//!
//! Both take the type apart without `..`: a field that is not named does not compile, so that a new one
//! cannot be forgotten.

/// Implements [`Stateful`](crate::Stateful): each field is one of
///
/// | word | field |
/// |---|---|
/// | `saved` | plain data: made anew |
/// | `sized` | a list of plain data whose length the configuration gives |
/// | `parts` | something with state of its own, loaded in place |
/// | `kept` | follows from the configuration, or is empty between two events: not saved |
#[macro_export]
macro_rules! state {
    ($name:ident $(<$of:ident: $bound:ident>)? { $($kind:ident: $($field:ident),+);+ $(;)? }) => {
        impl$(<$of: $bound>)? $crate::Stateful for $name$(<$of>)? {
            fn save(&self, out: &mut $crate::StateWriter) {
                let Self { $($($field,)+)+ } = self;
                $($($crate::state!(@save $kind $field out);)+)+
            }

            fn load(
                &mut self,
                from: &mut $crate::StateReader<'_>,
            ) -> Result<(), $crate::LoadFault> {
                let Self { $($($field,)+)+ } = self;
                $($($crate::state!(@load $kind $field from);)+)+
                Ok(())
            }
        }
    };
    (@save saved $field:ident $out:ident) => { $crate::Storable::save($field, $out) };
    (@save sized $field:ident $out:ident) => { $crate::save_sized(&$field[..], $out) };
    (@save parts $field:ident $out:ident) => { $crate::Stateful::save($field, $out) };
    (@save kept $field:ident $out:ident) => { let _ = ($field, &$out); };
    (@load saved $field:ident $from:ident) => {
        *$field = $crate::Storable::read($from).map_err(|fault| fault.within(stringify!($field)))?
    };
    (@load sized $field:ident $from:ident) => {
        $crate::load_sized(&mut $field[..], $from).map_err(|fault| fault.within(stringify!($field)))?
    };
    (@load parts $field:ident $from:ident) => {
        $crate::Stateful::load($field, $from).map_err(|fault| fault.within(stringify!($field)))?
    };
    (@load kept $field:ident $from:ident) => { let _ = ($field, &$from); };
}

/// `save` and `load` of another trait, such as that of components: those of [`Stateful`](crate::Stateful), or
/// with `none` those of something that does not change while it runs.
#[macro_export]
macro_rules! state_methods {
    () => {
        fn save(&self, out: &mut $crate::StateWriter) {
            $crate::Stateful::save(self, out);
        }

        fn load(&mut self, from: &mut $crate::StateReader<'_>) -> Result<(), $crate::LoadFault> {
            $crate::Stateful::load(self, from)
        }
    };
    (none) => {
        fn save(&self, _: &mut $crate::StateWriter) {}

        fn load(&mut self, _: &mut $crate::StateReader<'_>) -> Result<(), $crate::LoadFault> {
            Ok(())
        }
    };
}

/// Implements [`Storable`](crate::Storable) of a struct with these fields, of one around another value, or of
/// an enum with these variants.
#[macro_export]
macro_rules! value {
    (record $name:ident $(<$of:ident: $bound:ident>)? { $($field:ident),* $(,)? }) => {
        impl$(<$of: $bound>)? $crate::Storable for $name$(<$of>)? {
            fn save(&self, out: &mut $crate::StateWriter) {
                let Self { $($field),* } = self;
                let _ = &out;
                $($crate::Storable::save($field, out);)*
            }

            fn read(
                from: &mut $crate::StateReader<'_>,
            ) -> Result<Self, $crate::LoadFault> {
                let _ = &from;
                Ok(Self {
                    $($field: $crate::Storable::read(from)
                        .map_err(|fault| fault.within(stringify!($field)))?),*
                })
            }
        }
    };
    (wrapper $name:ident) => {
        impl $crate::Storable for $name {
            fn save(&self, out: &mut $crate::StateWriter) {
                $crate::Storable::save(&self.0, out);
            }

            fn read(
                from: &mut $crate::StateReader<'_>,
            ) -> Result<Self, $crate::LoadFault> {
                $crate::Storable::read(from).map($name)
            }
        }
    };
    (choice $name:ident $(<$of:ident: $bound:ident>)? {
        $($variant:ident $({ $($field:ident),* $(,)? })? $(($($item:ident),*))?),+ $(,)?
    }) => {
        const _: () = {
            #[allow(clippy::enum_variant_names, reason = "as the enum itself")]
            enum Tag { $($variant),+ }

            impl$(<$of: $bound>)? $crate::Storable for $name$(<$of>)? {
                fn save(&self, out: &mut $crate::StateWriter) {
                    match self {
                        $(Self::$variant $({ $($field),* })? $(($($item),*))? => {
                            out.bytes(&[Tag::$variant as u8]);
                            $($($crate::Storable::save($field, out);)*)?
                            $($($crate::Storable::save($item, out);)*)?
                        })+
                    }
                }

                fn read(
                    from: &mut $crate::StateReader<'_>,
                ) -> Result<Self, $crate::LoadFault> {
                    let tag = from.bytes(1)?[0];
                    $(if tag == Tag::$variant as u8 {
                        $($(let $field = $crate::Storable::read(from)
                            .map_err(|fault| fault.within(stringify!($variant)))?;)*)?
                        $($(let $item = $crate::Storable::read(from)
                            .map_err(|fault| fault.within(stringify!($variant)))?;)*)?
                        return Ok(Self::$variant $({ $($field),* })? $(($($item),*))?);
                    })+
                    Err($crate::LoadFault::new(format!("{tag} names no {}", stringify!($name))))
                }
            }
        };
    };
}
