//! Where workloads come from: folders on disk and the folders built into the binary, and the PTX that they
//! name or hold.
//!
//! A built-in workload is the same folder as in the project's `workloads/`, embedded when the crate is
//! compiled, so a manifest means the same in both. Faults in it are reported under `builtin:NAME/FILE`. A
//! folder without `workload.toml` may hold manifests that stand alone (`litmus/NAME.toml`), known by the name
//! `litmus/NAME`.
//!
//! Invariant: a line of PTX inside a manifest keeps the manifest's line number.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, include_dir};

use crate::expr::Value;
use durawarp_base::diagnostic::nearest;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Item, TomlTable};
use durawarp_base::input;
use durawarp_kernel::ir::{Kernel, Module};
use durawarp_kernel::ptx;

/// The folder of manifests that stand alone.
const LITMUS: &str = "litmus";
/// Those of programs of CPUs.
const LITMUS_OF_CPUS: &str = "litmus/cpu";

static BUILTIN: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../workloads");

/// The file that makes a folder a workload.
pub(crate) const MANIFEST_FILE: &str = "workload.toml";

/// A file that does not say that it is TOML is no manifest: faults of its syntax would say nothing.
fn not_another_file(path: &Path) -> Result<(), Diagnostic> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    if extension.as_deref() == Some("toml") {
        return Ok(());
    }
    let message = "this file is no workload: expected an ELF executable of RV64 (Linux, static), a manifest \
        (`.toml`), or the name of a built-in workload";
    let fault = Diagnostic::nowhere(&path.display().to_string(), message);
    if extension.as_deref() == Some("ptx") {
        return Err(fault.with_help("a manifest names a file of kernels: isa = { kind = \"ptx\", file = \"...\" }"));
    }
    if extension.as_deref() == Some("cu") {
        let compiled = path.with_extension("ptx");
        let name = compiled.file_name().unwrap_or_default().display();
        return Err(fault.with_help(format!(
            "`workloads/compile.sh {}` makes PTX of it, and a manifest names that: isa = {{ kind = \"ptx\", file = \"{name}\" }}",
            path.display()
        )));
    }
    let names: Vec<&str> = builtin_names().collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    Err(fault.with_nearest_or(&stem, names, || Some("`durawarp list workloads` has the names".to_owned())))
}

/// A workload's folder.
#[derive(Debug, Clone)]
pub(crate) enum Folder {
    /// In the binary, with the name of its manifest.
    Builtin { dir: &'static Dir<'static>, manifest: String },
    /// On disk, with the name of its manifest.
    Disk { folder: PathBuf, manifest: String },
    /// None: the text of the manifest. Files that it names are relative to the current folder.
    Text(Arc<str>),
}

impl Folder {
    /// Finds a workload by the path of its folder or of its manifest, or by its built-in name; a path that
    /// exists wins.
    ///
    /// # Errors
    /// No such path, a file that is no manifest, a folder without a manifest, an unknown name (with the
    /// nearest known one).
    pub(crate) fn find(name_or_path: &str) -> Result<Folder, Diagnostic> {
        let path = Path::new(name_or_path);
        if path.is_file() {
            not_another_file(path)?;
            let manifest = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            return Ok(Folder::Disk { folder, manifest });
        }
        if path.is_dir() {
            if !path.join(MANIFEST_FILE).is_file() {
                let fault = Diagnostic::nowhere(name_or_path, format!("the folder has no `{MANIFEST_FILE}`"));
                return Err(fault.with_help("a workload is a folder with that file, see workloads/README.md"));
            }
            return Ok(Folder::Disk { folder: path.to_owned(), manifest: MANIFEST_FILE.to_owned() });
        }
        // No such path: what is left are the names of built-in workloads.
        if let Some(dir) = BUILTIN.get_dir(name_or_path).filter(|dir| is_workload(dir)) {
            return Ok(Folder::Builtin { dir, manifest: MANIFEST_FILE.to_owned() });
        }
        // Litmus programs of CPUs have a folder of their own among the others.
        if let Some((folder, name)) = name_or_path.rsplit_once('/')
            && folder.starts_with(LITMUS)
            && BUILTIN.get_file(format!("{name_or_path}.toml")).is_some()
            && let Some(dir) = BUILTIN.get_dir(folder)
        {
            return Ok(Folder::Builtin { dir, manifest: format!("{name}.toml") });
        }
        if name_or_path.split_once('/').is_some_and(|(folder, _)| folder == LITMUS) {
            let names: Vec<String> = litmus_names().collect();
            let fault = Diagnostic::nowhere("", format!("there is no workload `{name_or_path}`, and no such path"));
            let all = || Some(format!("built in: {}", names.join(", ")));
            return Err(fault.with_nearest_or(name_or_path, names.iter().map(String::as_str), all));
        }
        // This was meant as a path: names like it would not help.
        if name_or_path.contains(['/', '\\']) || name_or_path.ends_with(".toml") {
            return Err(Diagnostic::nowhere(name_or_path, "no such file or folder"));
        }
        let names: Vec<&str> = builtin_names().collect();
        let fault = Diagnostic::nowhere("", format!("there is no workload `{name_or_path}`, and no such path"));
        let all = || Some(format!("built in: {}", names.join(", ")));
        Err(fault.with_nearest_or(name_or_path, names.iter().copied(), all))
    }

    /// The name under which faults in one of its files are reported.
    pub(crate) fn display_name(&self, file: &str) -> String {
        match self {
            Folder::Builtin { dir, .. } => format!("builtin:{}/{file}", dir.path().display()),
            Folder::Disk { folder, .. } => folder.join(file).display().to_string(),
            Folder::Text(_) => file.to_owned(),
        }
    }

    /// The folder on disk; of a built-in workload, or of a text, the current one.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Folder::Disk { folder, .. } => folder,
            Folder::Builtin { .. } | Folder::Text(_) => Path::new(""),
        }
    }

    /// The manifest's file name.
    pub(crate) fn manifest(&self) -> &str {
        match self {
            Folder::Builtin { manifest, .. } | Folder::Disk { manifest, .. } => manifest,
            Folder::Text(_) => MANIFEST_FILE,
        }
    }

    /// Content of a file of the folder.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn read(&self, file: &str) -> Result<Vec<u8>, String> {
        self.read_up_to(file, u64::MAX)
    }

    fn read_up_to(&self, file: &str, most: u64) -> Result<Vec<u8>, String> {
        match self {
            Folder::Builtin { dir, .. } => match BUILTIN.get_file(beside(dir.path(), file)) {
                Some(found) => Ok(found.contents().to_vec()),
                None => Err(format!("cannot read `{file}`: the built-in workload has no such file{}", self.near(file))),
            },
            Folder::Text(manifest) if file == MANIFEST_FILE => Ok(manifest.as_bytes().to_vec()),
            Folder::Text(_) => self.on_disk(Path::new(""), file, most),
            Folder::Disk { folder, .. } => self.on_disk(folder, file, most),
        }
    }

    fn on_disk(&self, folder: &Path, file: &str, most: u64) -> Result<Vec<u8>, String> {
        input::bytes(&folder.join(file), most).map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("cannot read `{file}`: no such file{}", self.near(file)),
            _ => format!("cannot read `{file}`: {error}"),
        })
    }

    /// " (did you mean `FILE`?)" with the file beside the manifest whose name is nearest, or nothing; of PTX
    /// whose CUDA source is there, how it is compiled.
    fn near(&self, file: &str) -> String {
        if let Folder::Disk { folder, .. } = self
            && file.ends_with(".ptx")
            && let source = folder.join(file).with_extension("cu")
            && source.is_file()
        {
            return format!(" (`workloads/compile.sh {}` makes it)", source.display());
        }
        let mut names: Vec<String> = match self {
            Folder::Builtin { dir, .. } => {
                dir.files().filter_map(|file| Some(file.path().file_name()?.to_str()?.to_owned())).collect()
            }
            Folder::Disk { folder, .. } => file_names(folder),
            Folder::Text(_) => file_names(Path::new(".")),
        };
        names.sort_unstable();
        let found = nearest(file, names.iter().map(String::as_str));
        found.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
    }

    /// Content of a text file of the folder.
    ///
    /// # Errors
    /// Why it cannot be read as UTF-8.
    pub(crate) fn read_text(&self, file: &str) -> Result<String, String> {
        let content = self.read_up_to(file, input::MAX_TEXT_BYTES)?;
        String::from_utf8(content).map_err(|error| format!("`{file}` is not UTF-8 text: {error}"))
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Paths of the workloads that a folder holds, by name: manifests `NAME.toml`, and folders `NAME` with one.
///
/// # Errors
/// It cannot be read, or holds none; two have one name.
pub(crate) fn workloads_in(folder: &Path) -> Result<Vec<PathBuf>, Diagnostics> {
    let shown = folder.display().to_string();
    let unreadable = |error| Diagnostic::nowhere(&shown, format!("cannot read the folder: {error}"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && path.extension().is_some_and(|extension| extension == "toml")
            || path.join(MANIFEST_FILE).is_file()
        {
            found.push(path);
        }
    }
    found.sort_unstable();
    let mut faults = Diagnostics::default();
    if found.is_empty() {
        let fault = Diagnostic::nowhere(&shown, "the folder holds no workload");
        faults.push(fault.with_help(format!("it has manifests `NAME.toml`, or folders `NAME/{MANIFEST_FILE}`")));
    }
    for (one, other) in found.iter().zip(found.iter().skip(1)) {
        if one.with_extension("") == other.with_extension("") {
            let message = format!("`{}` and `{}` have one name", one.display(), other.display());
            faults.push(Diagnostic::nowhere(&shown, message));
        }
    }
    faults.into_result(found)
}

/// The path of a file that a manifest in `folder` names: `..` leads to the folders beside it.
fn beside(folder: &Path, file: &str) -> PathBuf {
    Path::new(file).components().fold(folder.to_owned(), |mut path, part| {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
        path
    })
}

fn is_workload(dir: &Dir<'_>) -> bool {
    dir.get_file(dir.path().join(MANIFEST_FILE)).is_some()
}

/// Names of the built-in workloads, sorted.
pub(crate) fn builtin_names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> =
        BUILTIN.dirs().filter(|dir| is_workload(dir)).filter_map(|dir| dir.path().to_str()).collect();
    names.sort_unstable();
    names.into_iter()
}

/// Names of the built-in litmus programs, of kernels and of CPUs, sorted.
pub(crate) fn litmus_names() -> impl Iterator<Item = String> {
    let folders = [LITMUS, LITMUS_OF_CPUS].into_iter().filter_map(|folder| BUILTIN.get_dir(folder));
    let files: Vec<_> = folders.flat_map(|dir| dir.files()).collect();
    let name = |path: &Path| {
        let toml = path.extension().is_some_and(|extension| extension == "toml");
        toml.then(|| path.with_extension("").to_string_lossy().replace('\\', "/"))
    };
    let mut names: Vec<String> = files.into_iter().filter_map(|file| name(file.path())).collect();
    names.sort_unstable();
    names.into_iter()
}

/// The least and the greatest stack of a thread, in bytes: a frame, and half of the local memory that a
/// thread can have.
const STACK_LEAST: i64 = 16;
const STACK_MOST: i64 = 256 << 10;

/// The PTX files of a workload, decoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Programs {
    pub(crate) modules: Vec<Module>,
    /// Name and text of each module's file.
    pub(crate) texts: Vec<(String, String)>,
    /// Bytes of a thread's stack for recursive functions.
    pub(crate) stack_bytes: u32,
    /// Every file could be read: a kernel that is not here does not exist.
    pub(crate) complete: bool,
}

impl Programs {
    /// Reads and decodes the files that `[isa]` names, or the text that it holds.
    pub(crate) fn read(root: TomlTable<'_>, folder: &Folder, faults: &mut Diagnostics) -> Programs {
        let mut programs =
            Programs { modules: Vec::new(), texts: Vec::new(), stack_bytes: ptx::STACK_BYTES, complete: true };
        let Some(isa) = root.table("isa") else {
            programs.complete = false;
            return programs;
        };
        if let Some(item) = isa.get("stack_bytes") {
            match item.number() {
                Some(Value::Int(bytes @ STACK_LEAST..=STACK_MOST)) => programs.stack_bytes = bytes as u32,
                Some(Value::Int(bytes @ 0..)) => {
                    let message = format!("`stack_bytes` must be from {STACK_LEAST} to {STACK_MOST}, found {bytes}");
                    faults.push(item.place().fault(message));
                }
                // The check of the manifest's form reports it.
                _ => {}
            }
        }
        let (file, text) = (isa.get("file"), isa.get("text"));
        match (file, text) {
            (None, None) => {
                let fault = isa.place().fault("`isa` lacks the key `file`");
                faults.push(fault.with_help("or `text`, with the PTX itself"));
            }
            (Some(_), Some(text)) => {
                faults.push(text.place().fault("`isa` has both `file` and `text`"));
                programs.complete = false;
                return programs;
            }
            _ => {}
        }
        let files = file.map_or_else(Vec::new, |item| item.list().unwrap_or_else(|| vec![item]));
        // Without a file that was read in full a missing kernel is no fault of the manifest.
        programs.complete = !files.is_empty() || text.is_some();
        let sources = files.into_iter().map(|file| (file, false)).chain(text.map(|text| (text, true)));
        for (item, inline) in sources {
            match if inline { programs.inline(item) } else { programs.module(item, folder) } {
                Ok((module, text)) => {
                    programs.modules.push(module);
                    programs.texts.push(text);
                }
                Err(found) => {
                    programs.complete = false;
                    found.0.into_iter().for_each(|fault| faults.push(fault));
                }
            }
        }
        programs
    }

    fn module(&self, file: Item<'_>, folder: &Folder) -> Result<(Module, (String, String)), Diagnostics> {
        let Some(name) = file.text() else {
            return Err(Diagnostics::default());
        };
        let text = folder.read_text(name).map_err(|error| Diagnostics::from(file.place().fault(error)))?;
        self.decoded(folder.display_name(name), text, file)
    }

    /// PTX in the manifest itself. What stands before it becomes empty lines and blanks: places are the
    /// manifest's.
    fn inline(&self, item: Item<'_>) -> Result<(Module, (String, String)), Diagnostics> {
        let Some(text) = item.text() else {
            return Err(Diagnostics::default());
        };
        let Some(start) = item.place().start_of(text) else {
            let fault = item.place().fault("PTX in a manifest has no escapes, so that its lines can be told");
            return Err(fault.with_help("three single quotes around it keep every character").into());
        };
        let before = &item.source.text[..start];
        let (above, left) = before.rsplit_once('\n').unwrap_or(("", before));
        let lines = if before.contains('\n') { above.matches('\n').count() + 1 } else { 0 };
        let padded = format!("{}{}{text}", "\n".repeat(lines), " ".repeat(left.chars().count()));
        self.decoded(item.source.file.clone(), padded, item)
    }

    fn decoded(&self, shown: String, text: String, file: Item<'_>) -> Result<(Module, (String, String)), Diagnostics> {
        let module = ptx::parse_with_stack(&shown, &text, self.stack_bytes)?;
        if let Some(twice) = module.kernels.iter().find(|kernel| self.kernel(&kernel.name).is_some()) {
            let message = format!("kernel `{}` is also in another file of `[isa]`", twice.name);
            return Err(file.place().fault(message).into());
        }
        Ok((module, (shown, text)))
    }

    /// A kernel by its symbol, and the number of its module.
    pub(crate) fn kernel(&self, name: &str) -> Option<(usize, Arc<Kernel>)> {
        self.modules.iter().enumerate().find_map(|(number, module)| {
            let kernel = module.kernels.iter().find(|kernel| kernel.name == name)?;
            Some((number, kernel.clone()))
        })
    }
}
