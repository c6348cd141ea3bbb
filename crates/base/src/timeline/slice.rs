//! A span of time in a timeline, and what it was.

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// A launch, by its number from 0.
    Kernel { launch: u32 },
    /// A CTA is resident.
    Cta {
        launch: u32,
        /// CTA of the launch.
        cta: u32,
    },
    /// A warp waits for durability, or for others at a persist barrier.
    Stall {
        /// The instruction it waits at.
        at: &'static str,
        launch: u32,
        /// CTA of the launch.
        cta: u32,
        /// Warp of the CTA.
        warp: u16,
    },
    /// A persist barrier, from the first arrival until those who came go on.
    Barrier {
        /// Its instruction.
        at: &'static str,
        launch: u32,
        /// CTA of the launch; none for one of the whole kernel.
        cta: Option<u32>,
    },
    /// A period of a selector of data paths.
    Period {
        /// Its place among the periods that the run reports.
        index: u32,
    },
    /// A recoverable region, or what it waits for at a controller.
    Region {
        /// What: a region, or "bdry-ACKs", "flush", "flush-ACKs".
        what: &'static str,
        /// Its order: 0, or its SM.
        order: u16,
        /// Its number in the order.
        region: u32,
    },
    /// A hart runs instructions, or waits.
    Hart {
        /// What it does.
        what: &'static str,
        /// The instruction at which it began.
        pc: u64,
    },
    /// A verb of a client, from when it was posted until it was acknowledged.
    Verb {
        /// Its number in its channel.
        number: u64,
    },
    /// A write of a line, or of a part of one.
    Write {
        /// Address of the line.
        line: u64,
        /// To persistent memory.
        persistent: bool,
    },
}

/// Something that took time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// When it began, in ticks.
    pub start: u64,
    /// When it was over, in ticks.
    pub end: u64,
    /// What it was.
    pub label: Label,
    /// It was not over when the run ended.
    pub cut: bool,
}
