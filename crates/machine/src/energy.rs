//! What an event costs in energy: a number for each kind of event, as parameters of a machine.
//!
//! The model never reads them: the outcome multiplies them with counters when a run is over, so that
//! no cycle follows from any of them. Source: each machine file has one beside every number. Not here: static
//! power, clocks, instruction fetch and scheduling, execution units of SMs, queues of controllers.

use durawarp_base::spec;
use durawarp_base::spec::Picojoules;

/// Declares what events of a chip cost, and then what those of memory devices and of their buses cost, which
/// machines of both kinds have.
macro_rules! energy_spec {
    ($(#[$meta:meta])* pub struct $name:ident { $($of_chip:tt)* }) => {
        spec! {
            $(#[$meta])*
            pub struct $name {
                $($of_chip)*
                /// A bit of a DRAM row that is sensed when the row is opened.
                dram_activate_bit_pj: Picojoules,
                /// A bit read from an open DRAM row.
                dram_read_bit_pj: Picojoules,
                /// A bit written to DRAM, its cell included.
                dram_write_bit_pj: Picojoules,
                /// One refresh command of DRAM, above what an open bank draws. A device that says it is asked
                /// where the machine does not say it.
                dram_refresh_pj: Picojoules,
                /// A bit of an NVM row that is sensed when the row is opened.
                nvm_activate_bit_pj: Picojoules,
                /// A bit read from an open NVM row.
                nvm_read_bit_pj: Picojoules,
                /// A bit of NVM whose cell is written.
                nvm_write_bit_pj: Picojoules,
                /// A bit over a channel's data bus.
                bus_bit_pj: Picojoules,
            }
        }
    };
}

energy_spec! {
    /// Energy of events of a machine with a GPU.
    pub struct EnergySpec {
        /// One access of a warp to the register file: an operand of all lanes.
        register_access_pj: Picojoules,
        /// Operands of a warp instruction, read or written. They are not counted one by one.
        operands_per_instruction: u32 where 0..=8,
        /// One pass of a warp through the banks of shared memory.
        shared_access_pj: Picojoules,
        /// One access to a line of an L1.
        l1_access_pj: Picojoules,
        /// One access to a line of an L2 slice.
        l2_access_pj: Picojoules,
        /// One byte of a flit through the crossbar.
        crossbar_byte_pj: Picojoules,
    }
}

energy_spec! {
    /// Energy of events of a machine of CPU cores.
    pub struct CpuEnergySpec {
        /// An instruction that retires: fetch, decode, registers and execution.
        instruction_pj: Picojoules,
        /// A load or store of a word in an L1.
        l1_access_pj: Picojoules,
        /// One access to a line of the shared cache.
        llc_access_pj: Picojoules,
    }
}

/// No cycle follows from the parameter `table.key`: it serves energy or lifetime alone.
pub fn is_beside_time(key: &str) -> bool {
    key.starts_with("energy.") || matches!(key, "nvm.endurance_writes" | "nvm.capacity_gb")
}

#[cfg(test)]
mod tests {
    use super::is_beside_time;

    #[test]
    fn only_parameters_of_energy_and_lifetime_are_beside_time() {
        assert!(
            ["energy.l1_access_pj", "energy.bus_bit_pj", "nvm.endurance_writes"].iter().all(|key| is_beside_time(key))
        );
        assert!(!["nvm.cell_write_ns", "l1.kb", "nvm.banks"].iter().any(|key| is_beside_time(key)));
    }
}
