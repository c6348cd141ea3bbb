//! From a document, or from an executable alone, to the manifest of a program of CPUs.
//!
//! What the check against the keys reported is skipped here without a second message.

use std::path::Path;
use std::sync::Arc;

use super::argument;
use super::manifest::{
    Argument, CheckForm, ClientKey, CpuManifest, MANIFEST, NamedCheck, OF_KERNELS, RECOVERY, Sizes, StartForm,
};
use crate::expr::{Expr, Scope, Type, Value};
use crate::manifest::names::Names;
use crate::manifest::source::Folder;
use crate::read::{SCHEMA_VERSION, params, profiles};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document;
use durawarp_base::document::{Item, KeyRule, Shape, SourceText, TomlTable, check_keys, optional, parse};
use durawarp_base::input;
use durawarp_riscv::elf;
use durawarp_riscv::memory::MEMORY_MAX_BYTES;
use durawarp_riscv::syscalls::File;

/// Most bytes of an executable or of a data file.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The manifest says that its program is of CPUs; one that misspells it has the keys of such a program.
pub(crate) fn is_of_a_cpu(root: TomlTable<'_>) -> bool {
    let kind = root.table("isa").and_then(|isa| isa.text("kind")).map(|(kind, _)| kind);
    kind == Some("riscv") || kind != Some("ptx") && root.get("program").is_some()
}

/// A file begins as an executable does.
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::io::Read as _;
    let mut magic = [0; 4];
    path.is_file()
        && std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == *b"\x7fELF"
}

/// Reads a manifest. What comes back counts only if no fault was pushed.
pub(crate) fn of_document(root: TomlTable<'_>, folder: &Folder, faults: &mut Diagnostics) -> CpuManifest {
    check(root, faults);
    let file = root.table("isa").and_then(|isa| isa.get("file"));
    let (name, place) = file.and_then(|item| Some((item.text()?, item.place()))).unzip();
    let content = match (name, &place) {
        (Some(name), Some(place)) => folder.read(name).map_err(|error| faults.push(place.fault(error))).ok(),
        _ => None,
    };
    let elf_file = name.map_or_else(String::new, |name| folder.display_name(name));
    let elf = Arc::new(content.unwrap_or_default());
    if !elf.is_empty() {
        structure(&elf_file, &elf, faults);
    } else if let (Some(place), true) = (&place, faults.0.is_empty()) {
        faults.push(place.fault("the file is empty: not an ELF executable"));
    }
    let mut reader = CpuReader { folder, names: Names::default(), faults };
    CpuManifest { elf, elf_file, elf_place: place, ..reader.manifest(root) }
}

/// What is wrong with an executable wherever it is put.
fn structure(file: &str, content: &[u8], faults: &mut Diagnostics) {
    if let Err(found) = elf::load(file, content, MEMORY_MAX_BYTES) {
        faults.0.extend(found.0);
    }
}

/// The manifest of an executable alone: memory of 256 MiB, persistent memory of 64 MiB, exit code 0.
///
/// # Errors
/// Everything that keeps it from being run.
pub(crate) fn of_executable(path: &Path) -> Result<CpuManifest, Diagnostics> {
    const TEXT: &str = "schema = 1\nname = \"\"\ndescription = \"\"\nisa = { kind = \"riscv\", file = \"\" }\n\
        params = { memory_mb = 256, pm_mb = 64, stack_kb = 1024 }\n\
        program = { memory_mb = \"memory_mb\", pm_mb = \"pm_mb\", stack_kb = \"stack_kb\" }\n";
    let shown = path.display().to_string();
    let unreadable = |error| Diagnostic::nowhere(&shown, format!("cannot read the file: {error}"));
    let content = input::bytes(path, MAX_FILE_BYTES).map_err(unreadable)?;
    let mut faults = Diagnostics::default();
    structure(&shown, &content, &mut faults);
    let source = Arc::new(SourceText::new(&shown, TEXT.to_owned()));
    let document = parse(&source, &mut faults);
    let folder = Folder::Text("".into());
    let mut reader = CpuReader { folder: &folder, names: Names::default(), faults: &mut faults };
    let manifest = reader.manifest(TomlTable::root(&source, &document));
    let name = path.file_name().map_or_else(|| "program".to_owned(), |name| name.to_string_lossy().into_owned());
    let description = format!("the program `{shown}`");
    faults.into_result(CpuManifest {
        name,
        description,
        elf: Arc::new(content),
        elf_file: shown,
        elf_place: None,
        ..manifest
    })
}

/// Checks the keys.
fn check(root: TomlTable<'_>, faults: &mut Diagnostics) {
    let Shape::Table(keys) = MANIFEST else { return };
    // Keys of kernels get a reason instead of "unknown".
    for (name, place, _) in root.entries().filter(|(name, ..)| OF_KERNELS.contains(name)) {
        let fault = place.fault(format!("`{name}` is of manifests of kernels: a RISC-V program runs by itself"));
        faults.push(fault.with_help("its threads, memory and arguments are in `program`"));
    }
    match root.get("recovery") {
        Some(item) if item.list().is_some() => {
            let fault = item.place().fault("steps of recovery are of manifests of kernels");
            faults.push(fault.with_help("a RISC-V program recovers by itself: recovery = { args = [\"--recover\"] }"));
        }
        Some(item) => document::check(&RECOVERY, item, "`recovery`", faults),
        None => {}
    }
    let of_kernels = OF_KERNELS.iter().map(|name| optional(name, Shape::Any));
    let known: Vec<KeyRule> = keys.iter().copied().chain(of_kernels).collect();
    check_keys(&known, root, "the manifest", faults);
}

struct CpuReader<'a> {
    folder: &'a Folder,
    names: Names,
    faults: &'a mut Diagnostics,
}

impl CpuReader<'_> {
    /// All but the executable.
    fn manifest(&mut self, root: TomlTable<'_>) -> CpuManifest {
        if let Some(item) = root.get("schema")
            && let Some(Value::Int(version)) = item.number()
            && version != SCHEMA_VERSION
        {
            let message = format!("schema {version} is not known: this program reads {SCHEMA_VERSION}");
            self.faults.push(item.place().fault(message));
        }
        // Names first: no expression can be compiled before all names are known.
        let params = params(root, self.faults);
        let profiles = profiles(root, &params, self.faults);
        self.names = Names::new(&params, &[], &[]);
        let text = |key| root.text(key).map_or_else(String::new, |(text, _)| text.to_owned());
        let seed = root.get("seed").and_then(Item::number).map_or(1, Value::bits);
        let program = root.table("program");
        let mut size = |key| program.and_then(|program| self.integer(program.get(key)?, key));
        let sizes = Sizes {
            threads: size("threads"),
            memory_mb: size("memory_mb"),
            pm_mb: size("pm_mb"),
            stack_kb: size("stack_kb"),
        };
        // A manifest without `program` was reported: everything has its default then.
        let start = program.map_or_else(StartForm::default, |program| self.start(program));
        let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).chain(["default"]).collect();
        let checks = self.checks(root, &known);
        let recovery = root.table("recovery").map(|recovery| self.arguments(recovery));
        let of = |table| root.table(table).map(|keys| (table, keys));
        let clients = ["client", "nodes"].into_iter().filter_map(of).flat_map(|of| self.clients(of)).collect();
        CpuManifest {
            name: text("name"),
            description: text("description"),
            seed,
            params,
            profiles,
            names: std::mem::take(&mut self.names),
            sizes,
            start,
            checks,
            recovery,
            clients,
            elf: Arc::default(),
            elf_file: String::new(),
            elf_place: None,
        }
    }

    fn scope(&self) -> Scope {
        self.names.in_graph()
    }

    fn expr(&mut self, item: Item<'_>) -> Option<Expr> {
        if let Some(value) = item.number() {
            return Some(Expr::constant(value, &item.place()));
        }
        Expr::compile(item.text()?, &item.place(), &self.scope()).map_err(|fault| self.faults.push(fault)).ok()
    }

    fn integer(&mut self, item: Item<'_>, key: &str) -> Option<Expr> {
        let expr = self.expr(item)?;
        if expr.ty() == Type::Float {
            self.faults.push(expr.not_an_integer(&format!("`{key}`")));
            return None;
        }
        Some(expr)
    }

    fn arguments(&mut self, table: TomlTable<'_>) -> Vec<Argument> {
        let items = table.get("args").and_then(Item::list).unwrap_or_default();
        let read = |item| argument::read(item, &self.scope()).map_err(|fault| self.faults.push(fault)).ok();
        items.into_iter().filter_map(read).collect()
    }

    fn start(&mut self, program: TomlTable<'_>) -> StartForm {
        let (args, env) = (self.arguments(program), self.environment(program));
        let (files, stdin) = self.files(program);
        StartForm { args, env, files, stdin }
    }

    /// Variables of the environment, in the manifest's order.
    fn environment(&mut self, program: TomlTable<'_>) -> Vec<(String, Argument)> {
        let mut env = Vec::new();
        for (name, place, item) in program.table("env").into_iter().flat_map(TomlTable::entries) {
            // The C library finds a variable by what stands before the first `=`.
            if name.is_empty() || name.contains(['=', '\0']) {
                self.faults.push(place.fault("the name of a variable of the environment is empty or has a `=`"));
            }
            let value = argument::read(item, &self.scope()).map_err(|fault| self.faults.push(fault));
            env.extend(value.ok().map(|value| (name.to_owned(), value)));
        }
        env
    }

    /// Keys of a table of the machine.
    fn clients(&mut self, (of, table): (&str, TomlTable<'_>)) -> Vec<ClientKey> {
        let mut keys = Vec::new();
        for (name, _, item) in table.entries() {
            let Some(parts) = item.table() else { continue };
            let (Some(value), Some((source, _))) = (parts.get("value"), parts.text("source")) else { continue };
            let place = value.place();
            let value = match value.text() {
                Some(word) if name == "addresses" => Some(Argument::Word(word.to_owned())),
                _ => self.expr(value).map(Argument::Value),
            };
            let source = source.to_owned();
            keys.extend(value.map(|value| ClientKey { key: format!("{of}.{name}"), value, source, place }));
        }
        keys
    }

    /// Files that it may open, and which of them standard input reads.
    fn files(&mut self, program: TomlTable<'_>) -> (Vec<File>, Option<String>) {
        let mut files = Vec::new();
        let stdin = program.get("stdin");
        for item in program.get("files").and_then(Item::list).unwrap_or_default().into_iter().chain(stdin) {
            let Some(path) = item.text() else { continue };
            if files.iter().any(|file: &File| file.path == path) {
                continue;
            }
            match self.folder.read(path) {
                Ok(content) => files.push(File { path: path.to_owned(), content: Arc::new(content) }),
                Err(error) => self.faults.push(item.place().fault(error)),
            }
        }
        (files, stdin.and_then(|item| item.text()).map(str::to_owned))
    }

    /// Standard output as it is written in the manifest, or in a file beside it.
    fn stdout(&mut self, form: TomlTable<'_>) -> Option<CheckForm> {
        let text = match (form.get("text"), form.get("file")) {
            (Some(text), None) => text.text()?.to_owned(),
            (None, Some(file)) => {
                let text = self.folder.read_text(file.text()?);
                text.map_err(|error| self.faults.push(file.place().fault(error))).ok()?
            }
            (text, _) => {
                let message = match text {
                    Some(_) => "`ref` has both `text` and `file`",
                    None => "`ref` lacks the key `text`, or `file` with a file beside the manifest",
                };
                self.faults.push(form.place().fault(message));
                return None;
            }
        };
        let except = form.get("except").map(|item| item.list().unwrap_or_else(|| vec![item])).unwrap_or_default();
        let except = except.iter().filter_map(|item| item.text()).map(str::to_owned).collect();
        Some(CheckForm::Stdout { text, except })
    }

    fn checks(&mut self, root: TomlTable<'_>, known: &[&str]) -> Vec<NamedCheck> {
        let mut checks = Vec::new();
        for table in root.tables("verify") {
            let Some(form) = table.table("ref") else { continue };
            let Some((kind, _)) = form.text("kind") else { continue };
            let own = match kind {
                "exit_code" => form.get("value").and_then(|item| self.integer(item, "value")).map(CheckForm::ExitCode),
                "stdout" => self.stdout(form),
                "functional" => Some(CheckForm::Functional),
                _ => None,
            };
            let named = table.get("profile").map(|item| item.list().unwrap_or_else(|| vec![item])).unwrap_or_default();
            let mut profiles = Vec::new();
            for item in named {
                let Some(name) = item.text() else { continue };
                if !known.contains(&name) {
                    let fault = item.place().fault(format!("there is no profile `{name}`"));
                    self.faults.push(fault.with_nearest(name, known.iter().copied()));
                }
                profiles.push(name.to_owned());
            }
            let name = table.text("name").map_or(kind, |(name, _)| name).to_owned();
            checks.extend(own.map(|form| NamedCheck { name, profiles, form }));
        }
        checks
    }
}
