//! `[[crash]]`: conditions on what a power failure leaves, read.

use super::reader::Reader;
use crate::manifest::buffers::Space;
use crate::manifest::checks::{CrashForm, Setting};
use durawarp_base::document::{Item, TomlTable};

impl Reader<'_> {
    /// `[[crash]]`.
    pub(crate) fn conditions(&mut self, root: TomlTable<'_>) -> Vec<CrashForm> {
        let mut out: Vec<CrashForm> = Vec::new();
        let scope = self.names.in_verify(false);
        for table in root.tables("crash") {
            let holds = table.get("holds").and_then(|item| self.integer(item, &scope, "a condition"));
            let (Some(holds), Some((name, place))) = (holds, table.text("name")) else { continue };
            if out.iter().any(|other| other.name == name) {
                self.fault(place.fault(format!("there already is a condition `{name}`")));
            }
            for (buffer, place) in holds.reads() {
                let form = &self.buffers[buffer];
                let lost = match form.space {
                    Space::Pm => continue,
                    Space::Const => "the constant bank is",
                    Space::Dram | Space::Texture => "DRAM is",
                };
                let message = format!("`{}` is not in persistent memory: {lost} lost in a power failure", form.name);
                let fault = place.fault(message).with_help("conditions read buffers with `space = \"pm\"`");
                self.fault(fault);
            }
            // It is kept with its faults, so that a later one of the same name is found.
            out.push(CrashForm {
                name: name.to_owned(),
                holds,
                on_survived: table.text("on").is_some_and(|(word, _)| word == "survived"),
                source: table.text("source").map(|(text, _)| text.to_owned()),
                binding: setting(table),
                violated_by: table.tables("violated_by").into_iter().map(setting).collect(),
            });
        }
        out
    }
}

fn setting(table: TomlTable<'_>) -> Setting {
    let items = |key| table.get(key).and_then(Item::list);
    let text = |item: Item<'_>| item.text().map(|text| (text.to_owned(), item.place()));
    Setting {
        schemes: items("schemes").map(|items| items.into_iter().filter_map(text).collect()),
        domains: items("domains")
            .map(|items| items.into_iter().filter_map(|item| item.text().map(str::to_owned)).collect()),
        flag_barrier: table.text("flag_barrier").and_then(|(word, _)| word.parse().ok()),
    }
}
