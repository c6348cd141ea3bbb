//! C++ names of kernels: from a symbol as compilers write it to the name in the source.
//!
//! ```text
//! _Z5saxpyifPfS_              saxpy
//! _ZN4blas5saxpyEifPfS_       blas::saxpy
//! _Z4axpyIfLi4EEvPT_          axpy<float, 4>
//! ```
//!
//! Source: Itanium C++ ABI, 5.1.2 to 5.1.5 (`<encoding>`, `<nested-name>`, `<source-name>`,
//! `<template-args>`). Not covered: parameter types, which overloads differ by; template arguments other than
//! built-in types, pointers, named types and integers, which are shown as `...`; operators, constructors,
//! lambdas, which are no kernels.

use std::fmt;

/// A name as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceName {
    /// Namespaces and classes around it, outermost first.
    scopes: Vec<String>,
    name: String,
    /// Template arguments, without their brackets; `...` where one of them is not covered.
    arguments: Option<String>,
}

impl SourceName {
    /// Takes a symbol apart; `None` where it is not the mangled name of a function.
    ///
    /// ```
    /// use durawarp_kernel::mangled::SourceName;
    ///
    /// let name = SourceName::demangle("_ZN4blas4axpyIfEEviPT_").unwrap();
    /// assert_eq!(name.to_string(), "blas::axpy<float>");
    /// assert!(["axpy", "blas::axpy", "axpy<float>"].iter().all(|written| name.is(written)));
    /// assert_eq!(SourceName::demangle("saxpy"), None);
    /// ```
    pub fn demangle(symbol: &str) -> Option<SourceName> {
        let mut rest = Rest(symbol.strip_prefix("_Z")?);
        let nested = rest.eat("N");
        if nested {
            while rest.eat("r") || rest.eat("V") || rest.eat("K") {}
        }
        let mut parts: Vec<(String, Option<String>)> = Vec::new();
        loop {
            // A name of internal linkage.
            rest.eat("L");
            let name = rest.source_name()?;
            let arguments = rest.eat("I").then(|| rest.template_arguments(nested));
            parts.push((name, arguments));
            if !nested || rest.eat("E") {
                break;
            }
        }
        let (name, arguments) = parts.pop()?;
        let scope = |(name, arguments): (String, Option<String>)| match arguments {
            Some(arguments) => format!("{name}<{arguments}>"),
            None => name,
        };
        Some(SourceName { scopes: parts.into_iter().map(scope).collect(), name, arguments })
    }

    /// Its name without namespaces and template arguments.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether `written` names it: with or without its namespaces, with or without its template arguments.
    pub fn is(&self, written: &str) -> bool {
        let written: String = written.chars().filter(|c| *c != ' ').collect();
        let full: String = self.to_string().chars().filter(|c| *c != ' ').collect();
        let bare = SourceName { arguments: None, ..self.clone() }.to_string().replace(' ', "");
        let inner = |whole: &str| whole[bare.len() - self.name.len()..].to_owned();
        written == full || written == bare || written == inner(&full) || written == inner(&bare)
    }
}

/// A parameter's name for people: compilers number the parameters of a kernel behind its symbol.
///
/// ```
/// use durawarp_kernel::mangled::parameter;
///
/// assert_eq!(parameter("_Z5saxpyifPfS__param_2"), "saxpy_param_2");
/// assert_eq!(parameter("length"), "length");
/// ```
pub fn parameter(symbol: &str) -> String {
    let source =
        symbol.rsplit_once("_param_").and_then(|(kernel, number)| Some((SourceName::demangle(kernel)?, number)));
    source.map_or_else(|| symbol.to_owned(), |(kernel, number)| format!("{}_param_{number}", kernel.name))
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scopes.iter().try_for_each(|scope| write!(f, "{scope}::"))?;
        f.write_str(&self.name)?;
        self.arguments.iter().try_for_each(|arguments| write!(f, "<{arguments}>"))
    }
}

/// What is left of a symbol.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    fn eat(&mut self, prefix: &str) -> bool {
        let found = self.0.strip_prefix(prefix);
        self.0 = found.unwrap_or(self.0);
        found.is_some()
    }

    fn digits(&mut self) -> &str {
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits
    }

    /// A length, and that many characters.
    fn source_name(&mut self) -> Option<String> {
        let length: usize = self.digits().parse().ok()?;
        let (name, rest) = self.0.split_at_checked(length).filter(|_| length > 0)?;
        self.0 = rest;
        Some(if name.starts_with("_GLOBAL__N") { "(anonymous namespace)".to_owned() } else { name.to_owned() })
    }

    /// What stands between `I` and its `E`. If it is not covered, the rest of the symbol has no meaning any
    /// more; of a nested name only the end is left, which its last `E` is.
    fn template_arguments(&mut self, nested: bool) -> String {
        let mut shown = Vec::new();
        while !self.eat("E") {
            match self.template_argument() {
                Some(argument) => shown.push(argument),
                None => {
                    self.0 = if nested { "E" } else { "" };
                    return "...".to_owned();
                }
            }
        }
        shown.join(", ")
    }

    fn template_argument(&mut self) -> Option<String> {
        if !self.eat("L") {
            return self.ty();
        }
        let ty = self.ty()?;
        let minus = if self.eat("n") { "-" } else { "" };
        let value = format!("{minus}{}", self.digits());
        self.eat("E").then_some(())?;
        match (ty.as_str(), value.as_str()) {
            ("float" | "double", _) | (_, "" | "-") => None,
            ("bool", "0") => Some("false".to_owned()),
            ("bool", _) => Some("true".to_owned()),
            _ => Some(value),
        }
    }

    fn ty(&mut self) -> Option<String> {
        const BUILTIN: [(&str, &str); 16] = [
            ("a", "signed char"),
            ("b", "bool"),
            ("c", "char"),
            ("d", "double"),
            ("f", "float"),
            ("h", "unsigned char"),
            ("i", "int"),
            ("j", "unsigned int"),
            ("l", "long"),
            ("m", "unsigned long"),
            ("s", "short"),
            ("t", "unsigned short"),
            ("v", "void"),
            ("w", "wchar_t"),
            ("x", "long long"),
            ("y", "unsigned long long"),
        ];
        // Prefixes come before the type that they change, but C++ writes them after it.
        if self.eat("P") {
            return Some(format!("{}*", self.ty()?));
        }
        if self.eat("K") {
            return Some(format!("{} const", self.ty()?));
        }
        match BUILTIN.iter().find(|(code, _)| self.eat(code)) {
            Some((_, name)) => Some((*name).to_owned()),
            None => self.source_name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_give_the_names_of_the_source() {
        for (symbol, expected) in [
            ("_Z5saxpyifPfS_", "saxpy"),
            ("_ZL5saxpyifPfS_", "saxpy"),
            ("_ZN4blas6level15saxpyEifPfS_", "blas::level1::saxpy"),
            ("_ZN12_GLOBAL__N_15saxpyEif", "(anonymous namespace)::saxpy"),
            ("_Z4axpyIfLi4ELb1EEvPT_", "axpy<float, 4, true>"),
            ("_Z4axpyIPKf5PointLin2EEvT_", "axpy<float const*, Point, -2>"),
            ("_ZN4blas4axpyIdEEviPT_", "blas::axpy<double>"),
            ("_ZN4blas4axpyINS_5PointEEEviPT_", "blas::axpy<...>"),
            ("_ZN3BoxIfE3runEv", "Box<float>::run"),
        ] {
            assert_eq!(
                SourceName::demangle(symbol).map(|name| name.to_string()).as_deref(),
                Some(expected),
                "{symbol}"
            );
        }
    }

    #[test]
    fn other_symbols_are_no_names_of_cpp() {
        for symbol in ["saxpy", "_Z", "_Zsaxpy", "_Z9saxpy", "_ZN4blas", "_Z0v", "_Z4saxé", "_ZplRK5Point"] {
            assert_eq!(SourceName::demangle(symbol), None, "{symbol}");
        }
    }

    #[test]
    fn a_name_is_written_with_or_without_scopes_and_arguments() {
        let name = SourceName::demangle("_ZN4blas4axpyIfLi4EEEviPT_").unwrap();
        for written in ["axpy", "blas::axpy", "axpy<float, 4>", "axpy<float,4>", "blas::axpy<float,4>"] {
            assert!(name.is(written), "{written}");
        }
        for written in ["xpy", "axpy<float>", "s::axpy", "::axpy", "blas::axpy<float, 8>"] {
            assert!(!name.is(written), "{written}");
        }
    }
}
