//! What tests of regions share: kernels from bodies, an independent check of formed code, runs cut off at every region.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::sync::Arc;

use durawarp::kernel::functional::{Event, Limits, Observer, Start, Wanted, run, run_observed};
use durawarp::kernel::ir::{AtomOp, Guard, MemKind, Op, PmOp, Space};
use durawarp::kernel::launch::{Binding, Launch, ParamBlock};
use durawarp::kernel::memory::{AddressMap, FlatMemory, Medium};
use durawarp::kernel::ptx;
use durawarp::kernel::regions::{Formed, RegionOptions, Restart, Role, form};

/// Far behind everything that a test allocates.
pub(crate) const AREA: u64 = 1 << 42;

/// A kernel whose body finds the thread's number in `%id`, its own 64 bytes at `%d1`, and a small number in `%n`.
pub(crate) fn text_of(body: &str) -> String {
    format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n) {{\n\
        .reg .u32 %r<16>, %c<99>, %id, %n; .reg .u64 %d<4>; .reg .pred %p<5>;\nld.param.u64 %d1, [a];\n\
        ld.param.u32 %n, [n];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n\
        mad.lo.s32 %id, %r1, %r2, %r3;\nmul.wide.u32 %d2, %id, 64;\nadd.s64 %d1, %d1, %d2;\n{body}ret;\n}}\n"
    )
}

/// A launch of a text's kernel on random-looking data, and its memory.
pub(crate) fn kernel_of(text: &str, ctas: u32, threads: u32) -> (Launch, FlatMemory) {
    let module = ptx::parse("k.ptx", text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let kernel = module.kernels[0].clone();
    let mut map = AddressMap::default();
    let bytes = 64 * u64::from(ctas * threads);
    let data = map.allocate("data", bytes, Medium::Nvm);
    let mut memory = FlatMemory::new(&map);
    let values: Vec<u32> = (0..bytes as u32 / 4).map(|i| i.wrapping_mul(2654435761)).collect();
    memory.write_u32s(data, &values).unwrap();
    let binding = Binding {
        grid: [ctas, 1, 1],
        block: [threads, 1, 1],
        dynamic_shared: 0,
        params: &ParamBlock::new(&kernel).u64(data).u32(5).finish(),
        globals: &[],
        const_bank: None,
        textures: &[],
        surfaces: &[],
        registers: None,
        cluster: None,
        addresses: Arc::new(map),
    };
    (Launch::bind(&module, &kernel, &binding).unwrap(), memory)
}

/// Where the data of [`kernel_of`] lies.
pub(crate) fn data_of(launch: &Launch) -> u64 {
    launch.addresses.ranges()[0].start
}

/// What a run counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) regions: u64,
    pub(crate) instructions: u64,
    pub(crate) checkpoints: u64,
}

/// A launch, its memory before, and how to form it.
pub(crate) struct Case<'a> {
    pub(crate) name: &'a str,
    pub(crate) launch: &'a Launch,
    pub(crate) before: &'a FlatMemory,
    pub(crate) options: RegionOptions,
}

impl Case<'_> {
    /// Checks formed code, its memory against `after`, and restarts from `most` cuts at most, evenly chosen. Returns how
    /// many restarts there were.
    pub(crate) fn check(&self, after: &FlatMemory, most: usize) -> usize {
        let formed = form(&self.launch.kernel, &self.options).unwrap();
        check_code(&formed, &self.options);
        let mut memory = self.fresh(&formed);
        let bound = bind(&formed, self.launch);
        run(&bound, &mut memory, &Limits::default())
            .unwrap_or_else(|error| panic!("{} {:?}: {error}", self.name, self.options));
        self.compare(&memory, after, "formed");
        // A restart takes what races made as it comes; here only kernels without are cut.
        if !formed.obstacles.is_empty() || shares(self.launch) {
            return 0;
        }
        let images = cuts(self, &formed);
        let step = images.len().div_ceil(most).max(1);
        let mut restarts = 0;
        for (number, image) in images.iter().enumerate().step_by(step) {
            let mut memory = image.clone();
            let area = formed.checkpoint.alone(self.launch, AREA);
            let restart = Restart::new(&formed, &bound, &area, &memory).unwrap();
            let mut starts = |start: Start<'_>, memory: &FlatMemory| restart.start(start, memory).unwrap();
            run_observed(&bound, &mut memory, &Limits::default(), None, Some(&mut starts))
                .unwrap_or_else(|error| panic!("{} {:?} cut {number}: {error}", self.name, self.options));
            self.compare(&memory, after, &format!("restart from cut {number} of {}", images.len()));
            restarts += 1;
        }
        restarts
    }

    /// What a run of the formed kernel counts.
    pub(crate) fn figures(&self) -> Figures {
        let formed = form(&self.launch.kernel, &self.options).unwrap();
        let mut memory = self.fresh(&formed);
        let mut figures = Figures::default();
        let mut count = |event: Event<'_>| {
            if let Event::Issued { pc, .. } = event {
                match formed.roles[pc as usize] {
                    Role::Marker => figures.regions += 1,
                    Role::Checkpoint => figures.checkpoints += 1,
                    _ => {}
                }
                figures.instructions += 1;
            }
        };
        let bound = bind(&formed, self.launch);
        let wanted = Wanted { issued: true, ..Wanted::default() };
        let observer = Observer { wanted, tell: &mut count };
        run_observed(&bound, &mut memory, &Limits::default(), Some(observer), None).unwrap();
        figures
    }

    fn fresh(&self, formed: &Formed) -> FlatMemory {
        let mut memory = self.before.clone();
        memory.place(AREA, vec![0; formed.checkpoint.bytes(self.launch) as usize]);
        memory
    }

    fn compare(&self, memory: &FlatMemory, after: &FlatMemory, what: &str) {
        for (start, bytes) in after.ranges() {
            let ours = memory.read(start, bytes.len()).unwrap();
            if let Some(at) = (0..bytes.len()).find(|&i| ours[i] != bytes[i]) {
                panic!("{} {:?}: {what}: differs {at} bytes into {start:#x}", self.name, self.options);
            }
        }
    }
}

/// The launch of a formed kernel with its area at [`AREA`].
fn bind(formed: &Formed, launch: &Launch) -> Launch {
    formed.bind(launch, &formed.checkpoint.alone(launch, AREA))
}

/// Whether threads may meet at the same words without order: atomics whose result is used, and several threads' stores.
fn shares(launch: &Launch) -> bool {
    let used = |inst: &durawarp::kernel::ir::Inst| match inst.op {
        Op::Mem(mem) => mem.kind == MemKind::Atomic && matches!(mem.atom, AtomOp::Exch | AtomOp::Cas),
        _ => false,
    };
    launch.kernel.code.iter().any(used)
}

/// The memory after every number of persisted regions, from none to all: region by region in the order of their numbers,
/// which are drawn at their first stores, whichever warp's they are.
pub(crate) fn cuts(case: &Case<'_>, formed: &Formed) -> Vec<FlatMemory> {
    type Stores = Vec<(u64, Vec<u8>)>;
    let bound = bind(formed, case.launch);
    let mut memory = case.fresh(formed);
    let mut open: BTreeMap<(u64, u32), (u64, Stores)> = BTreeMap::new();
    let mut regions: BTreeMap<u64, Stores> = BTreeMap::new();
    let (mut next, mut who) = (0, (0, 0));
    let mut watch = |event: Event<'_>| match event {
        Event::Issued { cta, warp, pc, .. } => {
            who = (cta, warp);
            if formed.roles[pc as usize] == Role::Marker {
                let (number, stores) = open.remove(&who).expect("a boundary stores");
                regions.insert(number, stores);
            }
        }
        Event::Wrote { address, bytes, .. } => {
            let region = open.entry(who).or_insert_with(|| {
                next += 1;
                (next, Vec::new())
            });
            region.1.push((address, bytes.to_vec()));
        }
        _ => {}
    };
    let wanted = Wanted { issued: true, writes: true, ..Wanted::default() };
    let observer = Observer { wanted, tell: &mut watch };
    run_observed(&bound, &mut memory, &Limits::default(), Some(observer), None).unwrap();
    assert!(open.is_empty(), "{}: stores behind the last boundary", case.name);
    let mut image = case.fresh(formed);
    let mut images = vec![image.clone()];
    for stores in regions.into_values() {
        for (address, bytes) in stores {
            image.write(address, &bytes).unwrap();
        }
        images.push(image.clone());
    }
    images
}

/// Checks formed code by itself, without the pass's own analyses: no path holds more stores than the threshold between
/// boundaries, and whatever a restart loads was stored since its last update, on every path.
pub(crate) fn check_code(formed: &Formed, options: &RegionOptions) {
    let kernel = &formed.kernel;
    let n = kernel.code.len();
    let successors = |pc: usize| {
        let inst = &kernel.code[pc];
        let guarded = inst.guard != Guard::ALWAYS;
        let mut to = Vec::new();
        match inst.op {
            Op::Branch { target, .. } => {
                to.push(target as usize);
                if guarded {
                    to.push(pc + 1);
                }
            }
            Op::Exit | Op::Trap(_) if !guarded => {}
            _ => to.push(pc + 1),
        }
        to.retain(|&pc| pc < n);
        to
    };
    let marker = |pc: usize| kernel.code[pc].op == Op::Pm(PmOp::Region);
    // Stores on the longest way since a boundary; those to shared and local memory are counted at their shadows.
    let words = |pc: usize| match kernel.code[pc].op {
        Op::Mem(mem) if matches!(mem.kind, MemKind::Store | MemKind::Atomic | MemKind::Reduction) => {
            if matches!(mem.space, Space::Shared | Space::Local) { 0 } else { mem.bytes().div_ceil(8) }
        }
        _ => 0,
    };
    let limit = options.threshold_stores;
    if formed.report.oversize.is_empty() {
        let mut most = vec![None; n];
        let mut todo = vec![(0, 0)];
        while let Some((pc, stored)) = todo.pop() {
            if most[pc].is_some_and(|known| known >= stored) {
                continue;
            }
            most[pc] = Some(stored);
            let stored = if marker(pc) { 0 } else { stored + words(pc) };
            assert!(stored <= limit, "{stored} stores before pc {pc}");
            todo.extend(successors(pc).into_iter().map(|to| (to, stored)));
        }
        assert!(formed.regions.iter().all(|region| region.stores <= limit));
    }
    // Registers whose checkpoint is theirs, before each instruction.
    let registers = usize::from(kernel.no_register());
    let offset = |r: u16| formed.checkpoint.offset_of(r);
    // One word of all lanes: behind those of lanes.
    let word = |r: u16| formed.checkpoint.word_of(r);
    let saved_by = |pc: usize| {
        let stores = matches!(formed.roles[pc], Role::Checkpoint).then(|| kernel.code[pc].imm as u32)?;
        (0..registers as u16).find(|&r| offset(r) == Some(stores) || word(r) == Some(stores))
    };
    let by_word = |pc: usize, r: u16| word(r) == Some(kernel.code[pc].imm as u32);
    // First of lanes' words, then of one word.
    let mut saved: Vec<Option<Vec<bool>>> = vec![None; n];
    saved[0] = Some(vec![false; 2 * registers]);
    let mut todo = vec![0];
    while let Some(pc) = todo.pop() {
        let mut after = saved[pc].clone().unwrap();
        if formed.roles[pc] == Role::Program {
            for &r in kernel.hazards[pc].written() {
                // A guarded write needs a store under the same guard, or one of all lanes.
                after[usize::from(r)] = false;
                after[registers + usize::from(r)] = false;
            }
            if kernel.code[pc].guard != Guard::ALWAYS {
                for &r in kernel.hazards[pc].written() {
                    let kept = saved[pc].as_ref().unwrap()[usize::from(r)];
                    let mut at = pc + 1;
                    while at < n && matches!(formed.roles[at], Role::Checkpoint | Role::Select) {
                        let again =
                            kernel.code[at].guard == kernel.code[pc].guard || kernel.code[at].guard == Guard::ALWAYS;
                        if saved_by(at) == Some(r) && !by_word(at, r) && again && kept {
                            after[usize::from(r)] = true;
                        }
                        at += 1;
                    }
                }
            }
        }
        if let Some(r) = saved_by(pc)
            && kernel.code[pc].guard == Guard::ALWAYS
        {
            after[if by_word(pc, r) { registers } else { 0 } + usize::from(r)] = true;
        }
        for to in successors(pc) {
            let merged: Vec<bool> = match &saved[to] {
                None => after.clone(),
                Some(known) => known.iter().zip(&after).map(|(a, b)| *a && *b).collect(),
            };
            if saved[to].as_ref() != Some(&merged) {
                saved[to] = Some(merged);
                todo.push(to);
            }
        }
    }
    for (number, region) in formed.regions.iter().enumerate() {
        let boundary = region.entry as usize - 1;
        assert!(marker(boundary) && kernel.code[boundary].imm as usize == number);
        assert_eq!(formed.roles[boundary - 1], Role::Counter);
        if let Some(saved) = &saved[boundary] {
            for &r in &region.restore.loads {
                assert!(saved[usize::from(r)], "register {r} is loaded at pc {} and not stored", region.entry);
            }
            for &r in &region.restore.once {
                let saved = saved[registers + usize::from(r)];
                assert!(saved, "register {r} is loaded at pc {} as one word, and not stored as one", region.entry);
            }
        }
    }
}
