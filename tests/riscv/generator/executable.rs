//! ELF files of a segment of code and one of data.

/// The file of code, where the program begins, and of data, with their addresses.
pub(super) fn file((entry, code): (u64, &[u8]), (data_start, data): (u64, &[u8])) -> Vec<u8> {
    const EXECUTABLE: u16 = 2;
    const RISCV: u16 = 243;
    // Compressed instructions, floats in registers.
    const FLAGS: u32 = 5;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([EXECUTABLE, RISCV].iter().flat_map(|value| value.to_le_bytes()));
    file.extend(1u32.to_le_bytes());
    file.extend([entry, 64, 0].iter().flat_map(|value: &u64| value.to_le_bytes()));
    file.extend(FLAGS.to_le_bytes());
    file.extend([64u16, 56, 2, 64, 0, 0].iter().flat_map(|value| value.to_le_bytes()));
    let data_at = (4096 + code.len() as u64).next_multiple_of(4096);
    for (rights, at, address, bytes) in
        [(5u32, 4096, entry, code.len() as u64), (6, data_at, data_start, data.len() as u64)]
    {
        file.extend([1, rights].iter().flat_map(|value| value.to_le_bytes()));
        file.extend([at, address, address, bytes, bytes, 4096].iter().flat_map(|value| value.to_le_bytes()));
    }
    file.resize(4096, 0);
    file.extend(code);
    file.resize(data_at as usize, 0);
    file.extend(data);
    file
}
