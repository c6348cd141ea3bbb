//! The devices of a machine, from its keys `device`, `bin`, `density`, `timing`, `ranks` and `refresh`.
//!
//! A device's file is looked for beside the machine's file, then from the current folder, as the machine that
//! one inherits from is. Invariant: what a plain device would ignore is refused.

use std::path::Path;
use std::sync::Arc;

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{Draft, Override, ParameterDocument, Setting, USER_SOURCE, is_path};
use durawarp_base::spec::{Megahertz, Nanos, Picojoules};
use durawarp_machine::device::{Device, PLAIN, RefreshPolicy};
use durawarp_machine::media::MediaSpec;

use super::super::compute::MemorySpecs;
use super::constraints::word_of;
use super::file::load;
use super::request::{DevicePlace, DeviceRequest};

/// The DRAM's and the NVM's; `None` for plain ones.
pub type Devices = [Option<Arc<Device>>; 2];

/// The same for those who only look at them.
pub fn tables(devices: &Devices) -> [Option<&Device>; 2] {
    devices.each_ref().map(Option::as_deref)
}

/// Two clocks that differ by less than one part in this many are one: files have three decimals.
const CLOCK_PARTS: u64 = 100;

/// What a named device says of DRAM, and a value that stands there until it does ([`adopt`]).
const OF_DEVICE: [(&str, &str); 12] = [
    ("banks", "16"),
    ("row_bytes", "2048"),
    ("t_rcd_ns", "1"),
    ("t_cl_ns", "1"),
    ("t_wl_ns", "1"),
    ("t_rp_ns", "1"),
    ("t_ras_ns", "1"),
    ("t_ccd_ns", "1"),
    ("bank_groups", "1"),
    ("t_ccd_l_ns", "1"),
    ("t_rrd_ns", "1"),
    ("t_wr_ns", "1"),
];

/// The source of a value that stands where a machine file has none.
const LEFT_OUT: &str = "dram.device";

/// The key that a device of any kind, or none, decides where the machine does not.
const REFRESH_ENERGY: [&str; 2] = ["energy", "dram_refresh_pj"];

/// A machine that names its DRAM device need not say what the device says.
pub(in super::super) fn leave_to_device(draft: &mut Draft<'_>) {
    leave_out(draft, REFRESH_ENERGY, "0");
    if draft.given("dram", "device").is_none_or(|device| *device == PLAIN) {
        return;
    }
    for (key, value) in OF_DEVICE {
        leave_out(draft, ["dram", key], value);
    }
}

/// Sets a key that is not there.
fn leave_out(draft: &mut Draft<'_>, [table, key]: [&str; 2], value: &str) {
    if draft.given(table, key).is_none() {
        draft.set(&Setting {
            over: Override { key: format!("{table}.{key}"), value: value.to_owned() },
            source: LEFT_OUT.to_owned(),
            written: Diagnostic::nowhere("", ""),
        });
    }
}

/// Loads the devices that a machine names. The names become paths that hold from the current folder, and keys
/// of a plain device say what the named one has, each with that as its source.
pub(in super::super) fn devices(
    mut specs: MemorySpecs<'_>,
    document: &mut ParameterDocument,
    faults: &mut Diagnostics,
) -> Devices {
    let devices = named(&mut specs, document, faults);
    if let Some(device) = &devices[0] {
        adopt(device, specs.dram, document, faults);
    }
    adopt_refresh_energy(devices[0].as_deref(), &mut specs, document);
    devices
}

/// Makes a refresh cost what the device's file says, unless the machine says it.
fn adopt_refresh_energy(device: Option<&Device>, specs: &mut MemorySpecs<'_>, document: &mut ParameterDocument) {
    let [table, key] = REFRESH_ENERGY;
    let source = document.sources.entry(format!("{table}.{key}")).or_default();
    if source != LEFT_OUT {
        return;
    }
    let refresh = device.and_then(|device| {
        let own = device.refreshes.iter().find(|own| own.policy == specs.dram.refresh);
        own.map(|own| (device, own.energy))
    });
    (*specs.refresh_energy, *source) = match refresh {
        Some((device, Some(energy))) => {
            (energy, format!("device `{}`, {}: power_mw of its refresh", device.name, device.variant.join(", ")))
        }
        Some((device, None)) => (Picojoules::default(), format!("chosen: device `{}` does not say it", device.name)),
        None => (Picojoules::default(), "of no effect: DRAM is not refreshed".to_owned()),
    };
}

/// The devices, and what is wrong with what is asked of them.
fn named(specs: &mut MemorySpecs<'_>, document: &ParameterDocument, faults: &mut Diagnostics) -> Devices {
    let MemorySpecs { dram, nvm, memory_mhz, bytes_per_cycle, .. } = specs;
    let (memory_mhz, bytes_per_cycle) = (*memory_mhz, *bytes_per_cycle);
    dram.device = beside(&document.blame("dram", "device", "").file, &dram.device);
    nvm.device = beside(&document.blame("nvm", "device", "").file, &nvm.device);
    let blame = |table: &'static str| move |key: &str, why: &str| document.blame(table, key, why);
    let (of_dram, of_nvm) = (&blame("dram") as &DevicePlace<'_>, &blame("nvm") as &DevicePlace<'_>);
    let asked = [
        DeviceRequest {
            device: &dram.device,
            bin: &dram.bin,
            density: &dram.density,
            timing: &dram.timing,
            ranks: dram.ranks,
            place: of_dram,
        },
        // How many modules NVM is on does not matter: its table has no ranks, or one.
        DeviceRequest {
            device: &nvm.device,
            bin: &nvm.bin,
            density: &nvm.density,
            timing: &nvm.timing,
            ranks: 1,
            place: of_nvm,
        },
    ];
    let mut devices = asked.map(|asked| device(&asked, memory_mhz, document, faults));
    if let Some(device) = &mut devices[0] {
        let own = device.organisation.bytes_per_cycle();
        let times = f64::from(bytes_per_cycle) / own;
        if times > 1.0 && times.fract() == 0.0 {
            // A channel of ours that is wider has several of the device's.
            *device = Arc::new(Device::clone(device).widened(times as u32));
        } else if times != 1.0 {
            let name = &device.name;
            let why = format!(
                "{bytes_per_cycle} is no multiple of what a channel of device `{name}` moves: {own} bytes a cycle"
            );
            faults.push(document.blame("bus", "bytes_per_cycle", &why));
        }
    }
    // What is asked of a device and what it can do, once there is one.
    match &devices[0] {
        Some(device) if dram.refresh != RefreshPolicy::None => {
            let known: Vec<&str> = device.refreshes.iter().map(|refresh| word_of(refresh.policy)).collect();
            if !known.contains(&word_of(dram.refresh)) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let why = format!("device `{}` is not refreshed so; its policies are {known}", device.name);
                faults.push(of_dram("refresh", &why));
            }
        }
        None if dram.device == PLAIN && dram.refresh != RefreshPolicy::None => {
            faults.push(of_dram("refresh", "a plain device is not refreshed: dram.device names one that is"));
        }
        _ => {}
    }
    if dram.device == PLAIN && dram.ranks != 1 {
        faults.push(of_dram("ranks", "a plain device has one rank: dram.device names one that has more"));
    }
    if let Some(device) = devices[0].as_ref().filter(|device| device.buffer.is_some()) {
        let why = format!("device `{}` has a buffer, which is of NVM alone", device.name);
        faults.push(of_dram("device", &why));
    }
    if let Some(device) = devices[1].as_ref().filter(|device| !device.organisation.persistent) {
        let why = format!("device `{}` loses what it holds at a power failure (organisation.persistent)", device.name);
        faults.push(of_nvm("device", &why));
    }
    devices
}

/// The device that is asked for, if it is not plain.
fn device(
    asked: &DeviceRequest<'_>,
    memory: Megahertz,
    document: &ParameterDocument,
    faults: &mut Diagnostics,
) -> Option<Arc<Device>> {
    if asked.device == PLAIN {
        for (key, value) in [("bin", asked.bin), ("density", asked.density), ("timing", asked.timing)] {
            if !value.is_empty() {
                let why = format!("`{value}` is of no device: a plain one has its timing in the keys beside");
                faults.push((asked.place)(key, &why));
            }
        }
        return None;
    }
    let device = match load(asked) {
        Ok(loaded) => loaded.device,
        Err(found) => {
            faults.0.extend(found.0);
            return None;
        }
    };
    // The media count in cycles of the memory's clock: they are the device's.
    let (own_khz, khz) = (1_000_000_000 / device.t_ck_ps, memory.khz);
    if own_khz.abs_diff(khz) * CLOCK_PARTS > own_khz {
        let (mhz, tck) = (own_khz as f64 / 1e3, device.t_ck_ps as f64 / 1e3);
        let [bin, _] = &device.variant;
        let why =
            format!("{memory} MHz is not the clock of device `{}`, bin `{bin}`: {mhz} MHz, tCK {tck} ns", device.name);
        faults.push(document.blame("clock", "memory_mhz", &why));
    }
    Some(Arc::new(device))
}

/// Makes the keys of plain DRAM say what a device has, by names of JEDEC; what it has no name for is 0. One
/// that the user says otherwise is refused, as nothing would heed it.
fn adopt(device: &Device, dram: &mut MediaSpec, document: &mut ParameterDocument, faults: &mut Diagnostics) {
    let timing = |names: &[&str]| {
        let own = names.iter().find_map(|name| device.timing.iter().find(|(own, _)| own == name));
        Nanos { ps: own.map_or(0, |(_, cycles)| cycles * device.t_ck_ps) }
    };
    let own = &device.organisation;
    let of_cycles = |cycles: u32| Nanos { ps: u64::from(cycles) * device.t_ck_ps };
    let groups = own.levels.iter().find(|(name, _)| name == "bank_group").map_or(1, |(_, count)| *count);
    let durations = [
        ("t_rcd_ns", &mut dram.t_rcd_ns, timing(&["RCD", "RCDRD"])),
        ("t_cl_ns", &mut dram.t_cl_ns, of_cycles(own.read_cycles)),
        ("t_wl_ns", &mut dram.t_wl_ns, of_cycles(own.write_cycles)),
        ("t_rp_ns", &mut dram.t_rp_ns, timing(&["RP"])),
        ("t_ras_ns", &mut dram.t_ras_ns, timing(&["RAS"])),
        ("t_ccd_ns", &mut dram.t_ccd_ns, timing(&["CCD_S", "CCD"])),
        ("t_ccd_l_ns", &mut dram.t_ccd_l_ns, timing(&["CCD_L", "CCD_S", "CCD"])),
        ("t_rrd_ns", &mut dram.t_rrd_ns, timing(&["RRD_S", "RRD"])),
        ("t_wr_ns", &mut dram.t_wr_ns, timing(&["WR"])),
    ];
    // Each key and whether it said so already.
    let mut heeded = Vec::new();
    for (key, known, value) in durations {
        heeded.push((key, *known == value));
        *known = value;
    }
    let counts = [
        ("banks", &mut dram.banks, own.levels.iter().map(|(_, count)| count).product()),
        ("bank_groups", &mut dram.bank_groups, groups),
        ("row_bytes", &mut dram.row_bytes, own.row_bytes),
    ];
    for (key, known, value) in counts {
        heeded.push((key, *known == value));
        *known = value;
    }
    for (key, is_heeded) in heeded {
        let place = document.blame("dram", key, "");
        let source = document.sources.entry(format!("dram.{key}")).or_default();
        // A machine that is written out whole says both.
        if !is_heeded && (is_path(&place.file) || source == USER_SOURCE) {
            let name = &device.name;
            let why = format!("device `{name}` says this itself: set dram.timing, or dram.device to `{PLAIN}`");
            faults.push(document.blame("dram", key, &why));
        } else {
            *source = format!("device `{}`: {}", device.name, device.variant.join(", "));
        }
    }
}

/// A device's file as a machine's file names it: one beside that file, else as it is.
fn beside(machine_file: &str, device: &str) -> String {
    let near = Path::new(machine_file).parent().map(|folder| folder.join(device));
    let near = near.filter(|path| device.ends_with(".toml") && path.exists());
    near.map_or_else(|| device.to_owned(), |path| path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::OF_DEVICE;
    use crate::config::{CpuMachine, MachineConfig, Override};

    /// The machine with these overrides, or its faults.
    fn with(machine: &str, set: &[&str]) -> Result<MachineConfig, String> {
        let set: Vec<Override> = set.iter().map(|text| Override::parse(text).unwrap()).collect();
        MachineConfig::load(machine, &set).map_err(|faults| faults.to_string())
    }

    const GDDR5: [&str; 2] = ["dram.device=gddr5", "dram.bin=10Gbps"];

    #[test]
    fn a_machine_has_the_devices_that_it_names() {
        assert_eq!(with("agpm-table4", &[]).unwrap().devices, [None, None]);
        let own = with("titan-x", &[&GDDR5[..], &["dram.timing=RP = 17, CL=max(1, 18)"]].concat()).unwrap();
        let [Some(dram), None] = &own.devices else { panic!("{:?}", own.devices) };
        assert_eq!(dram.variant, ["10Gbps", "1Gb"]);
        let of = |name: &str| dram.timing.iter().find(|(own, _)| own == name).unwrap().1;
        assert_eq!([of("RP"), of("RC"), of("CL"), u64::from(dram.organisation.read_cycles)], [17, 54, 18, 18]);
        let set =
            ["dram.device=ddr4", "dram.ranks=2", "bus.bytes_per_cycle=16"].map(|text| Override::parse(text).unwrap());
        let own = CpuMachine::read("lightwsp-cpu", &set).unwrap();
        assert_eq!(own.devices[0].as_ref().unwrap().organisation.levels[0], ("rank".to_owned(), 2));
    }

    #[test]
    fn a_machine_of_its_own_leaves_to_its_device_what_that_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let whole = CpuMachine::read("lightwsp-cpu", &[]).unwrap();
        let text = whole.to_toml();
        let own = |line: &&str| !OF_DEVICE.iter().any(|(key, _)| line.starts_with(&format!("{key} = ")));
        let (before, rest) = text.split_once("[dram]").unwrap();
        let (dram, behind) = rest.split_once("[nvm]").unwrap();
        let short = dram.lines().filter(own).collect::<Vec<_>>().join("\n");
        let read = |device: &str| {
            std::fs::write(&file, format!("{before}[dram]{}[nvm]{behind}", short.replace("\"ddr4\"", device))).unwrap();
            CpuMachine::read(file.to_str().unwrap(), &[])
        };
        let left = read("\"ddr4\"").unwrap();
        assert_eq!((&left.spec.dram, &left.devices), (&whole.spec.dram, &whole.devices));
        assert_eq!(left.sources["dram.t_rcd_ns"], "device `ddr4`: 2400T, 8Gb_x8");
        // A plain device has nobody else to say it.
        let told = read("\"plain\"").unwrap_err().to_string();
        assert!(told.contains("`[dram]` lacks banks, row_bytes, t_rcd_ns"), "{told}");
    }

    #[test]
    fn a_refresh_costs_what_the_device_says_unless_the_machine_says_it() {
        let of = |machine: &str, set: &[&str]| {
            let own = with(machine, set).unwrap();
            let source = own.sources["energy.dram_refresh_pj"].clone();
            (own.spec.energy.dram_refresh_pj.to_string(), source)
        };
        // 117 mW for 298 cycles of 1.176 ns: JEDEC's 350 ns rounded up.
        let (each, source) = of("volta-v100", &[]);
        assert_eq!((each.as_str(), source.contains("device `hbm2`")), ("41002.416", true), "{source}");
        // As many rows in a given time, by one bank after another: a sixteenth each, but for the rounding of
        // REFIpb to whole cycles.
        let (bank, _) = of("volta-v100", &["dram.refresh=per_bank"]);
        let sixteenth = 41002.416 / bank.parse::<f64>().unwrap();
        assert!((15.9..16.2).contains(&sixteenth), "{sixteenth}");
        let own = of("volta-v100", &["energy.dram_refresh_pj=7"]);
        assert_eq!((own.0.as_str(), own.1.contains("hbm2")), ("7", false));
        let (none, source) = of("agpm-table4", &[]);
        assert_eq!((none.as_str(), source.as_str()), ("0", "of no effect: DRAM is not refreshed"));
        let whole = CpuMachine::read("lightwsp-cpu", &[]).unwrap();
        // 1987.2 mW for 421 cycles of 0.833 ns.
        assert_eq!(whole.spec.energy.dram_refresh_pj.to_string(), "696897.13");
    }

    #[test]
    fn a_clock_that_is_not_the_devices_is_told_with_both() {
        let told = with("titan-x", &["dram.bin=4Gbps"]).unwrap_err();
        assert!(told.contains("`clock.memory_mhz`: 2500 MHz is not the clock of device `gddr5`"), "{told}");
        assert!(told.contains("bin `4Gbps`: 1000 MHz, tCK 1 ns"), "{told}");
        let near = |mhz: &str| with("titan-x", &[&GDDR5[..], &[&format!("clock.memory_mhz={mhz}")]].concat());
        assert!(near("2525").is_ok() && near("2475").is_ok());
        assert!(near("2526").is_err() && near("2474").is_err());
    }

    #[test]
    fn a_channels_bus_moves_what_its_device_moves() {
        let told = with("titan-x", &[&GDDR5[..], &["bus.bytes_per_cycle=24"]].concat()).unwrap_err();
        let part =
            "`bus.bytes_per_cycle`: 24 is no multiple of what a channel of device `gddr5` moves: 16 bytes a cycle";
        assert!(told.contains(part), "{told}");
    }

    #[test]
    fn what_no_device_would_heed_is_refused() {
        let told = with("agpm-table4", &["dram.bin=2400R", "nvm.timing=RP=1", "dram.refresh=all_bank", "dram.ranks=2"]);
        let told = told.unwrap_err();
        for part in
            ["`dram.bin`: `2400R` is of no device", "`nvm.timing`: `RP=1` is of", "a plain device is not refreshed"]
        {
            assert!(told.contains(part), "{told}");
        }
        assert!(told.contains("`dram.ranks`: a plain device has one rank"), "{told}");
        let told = with("titan-x", &[&GDDR5[..], &["dram.refresh=per_bank"]].concat()).unwrap_err();
        assert!(
            told.contains("`dram.refresh`: device `gddr5` is not refreshed so; its policies are all_bank"),
            "{told}"
        );
        let told = with("titan-x", &[&GDDR5[..], &["dram.ranks=2"]].concat()).unwrap_err();
        assert!(told.contains("`dram.ranks`: `gddr5` has no ranks"), "{told}");
        let told = with("titan-x", &["nvm.device=gddr5", "nvm.bin=10Gbps"]).unwrap_err();
        assert!(told.contains("`nvm.device`: device `gddr5` loses what it holds at a power failure"), "{told}");
    }

    #[test]
    fn a_buffer_is_of_nvm_alone() {
        for machine in ["lightwsp-gpu", "agpm-table4"] {
            let own = with(machine, &["nvm.device=optane-100", "nvm.density=2x128GB"]).unwrap();
            assert!(own.devices[1].as_ref().unwrap().buffer.is_some() && own.devices[0].is_none(), "{machine}");
        }
        let told = with("agpm-table4", &["dram.device=optane-100"]).unwrap_err();
        assert!(told.contains("`dram.device`: device `optane-100` has a buffer, which is of NVM alone"), "{told}");
    }

    #[test]
    fn faults_of_names_are_told_at_the_machines_keys() {
        let told = with("titan-x", &["dram.device=gddr4", "nvm.device=pcm-lee2009", "nvm.timing=RQ=1"]).unwrap_err();
        assert!(told.contains("--set dram.device=gddr4: `dram.device`: there is no device `gddr4`"), "{told}");
        assert!(told.contains("did you mean `ddr4`?"), "{told}");
        assert!(told.contains("--set nvm.timing=RQ=1: `nvm.timing`: the device has no timing `RQ`"), "{told}");
    }

    #[test]
    fn a_file_is_looked_for_beside_the_machines() {
        let folder = tempfile::tempdir().unwrap();
        let text = include_str!("../devices/gddr5.toml").replace("name = \"gddr5\"", "name = \"mine\"");
        std::fs::write(folder.path().join("mine.toml"), &text).unwrap();
        let machine = folder.path().join("machine.toml");
        let keys = "inherits = \"titan-x\"\n[dram]\ndevice = \"mine.toml\"\nbin = \"10Gbps\"\n";
        std::fs::write(&machine, keys).unwrap();
        let read = with(machine.to_str().unwrap(), &[]).unwrap();
        assert_eq!(read.devices[0].as_ref().unwrap().name, "mine");
        assert!(std::path::Path::new(&read.spec.dram.device).is_file(), "a path from the current folder");
        std::fs::write(folder.path().join("mine.toml"), text.replace("BL = 2", "BM = 2")).unwrap();
        let told = with(machine.to_str().unwrap(), &[]).unwrap_err();
        assert!(told.contains("mine.toml:") && told.contains("unknown timing `BL`"), "{told}");
        std::fs::remove_file(folder.path().join("mine.toml")).unwrap();
        let told = with(machine.to_str().unwrap(), &[]).unwrap_err();
        assert!(told.contains("machine.toml:3:10: `dram.device`: cannot read device file `mine.toml`"), "{told}");
    }
}
