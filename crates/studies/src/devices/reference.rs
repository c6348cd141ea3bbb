//! What two other simulators take for the streams, as data: `reference.csv`, whose head says how its values
//! came about.

/// A measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Name of the stream.
    pub stream: &'static str,
    /// Name of the device.
    pub device: &'static str,
    /// Which simulator.
    pub simulator: &'static str,
    /// Of which commit.
    pub commit: &'static str,
    /// Without refresh.
    pub cycles: f64,
    /// What all-bank refresh adds, as a share.
    pub refresh_share: f64,
}

impl Reference {
    /// All of them, but those without a value.
    pub fn all() -> impl Iterator<Item = Reference> {
        let rows = include_str!("reference.csv").lines().filter(|row| !row.starts_with('#')).skip(1);
        rows.filter_map(|row| {
            let mut cells = row.split(',');
            let mut next = || cells.next();
            let (stream, device, simulator, commit) = (next()?, next()?, next()?, next()?);
            let [cycles, percent] = [next()?, next()?].map(|cell| cell.parse::<f64>().ok());
            Some(Reference { stream, device, simulator, commit, cycles: cycles?, refresh_share: percent? / 100.0 })
        })
    }

    /// With refresh or without.
    pub fn cycles(&self, refreshed: bool) -> f64 {
        if refreshed { self.cycles * (1.0 + self.refresh_share) } else { self.cycles }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::streams::STREAMS;

    #[test]
    fn every_stream_has_its_values_once() {
        let all: Vec<Reference> = Reference::all().collect();
        let mut expected = Vec::new();
        for stream in STREAMS {
            for device in ["ddr4", "hbm2"] {
                for simulator in ["Ramulator 2.1", "DRAMsim3"] {
                    expected.push((stream.name, device, simulator));
                }
            }
        }
        expected.retain(|key| *key != ("one-row", "hbm2", "DRAMsim3"));
        let keys: Vec<_> = all.iter().map(|row| (row.stream, row.device, row.simulator)).collect();
        assert_eq!(keys, expected);
        // Two simulators of one device are never far from each other, which a slip of the pen would be.
        for pair in all.chunk_by(|one, other| (one.stream, one.device) == (other.stream, other.device)) {
            let cycles: Vec<f64> = pair.iter().map(|row| row.cycles).collect();
            assert!(cycles.iter().all(|own| (own / cycles[0] - 1.0).abs() < 0.12), "{pair:?}");
        }
    }
}
