//! Tiles of tensors: which bytes a copy has, and which of them lie one behind the other in global memory.
//!
//! | mode | rows of a tile |
//! |---|---|
//! | `.tile` | those of a box, whose first element has the coordinates |
//! | `.tile::gather4`, `.tile::scatter4` | four of a tensor of two dimensions, wherever they are |
//! | `.im2col`, `.im2col_no_offs` | the channels of pixels (`im2col`) |
//!
//! Source: PTX ISA 5.5.3, 5.5.4. Invariant: [`Tile::run`] alone says where bytes are, for functional and for
//! timed runs. Rows follow each other in shared memory without a gap.

use durawarp_checkpoint::value;

use super::{TensorElem, TensorMap};

/// Rows that `.tile::gather4` and `.tile::scatter4` copy.
const GATHERED: u32 = 4;

/// A tile of a tensor, parts of which may lie outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    pub map: TensorMap,
    pub place: TilePlace,
}

value!(record Tile { map, place });

/// Where a tile lies in its tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TilePlace {
    /// The box whose first element has these coordinates.
    Box([i32; 5]),
    /// These rows of a tensor of two dimensions, from a column on.
    Rows { column: i32, rows: [i32; 4] },
    /// Pixels from the one on at which the filter lies first; the offsets say which part of the filter.
    Pixels { first: [i32; 5], offsets: [u16; 3] },
}

value!(choice TilePlace { Box(at), Rows { column, rows }, Pixels { first, offsets } });

/// Bytes of a copy that lie one behind the other in global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileRun {
    /// Address of the first; none where the tensor has no such elements.
    pub global: Option<u64>,
    pub bytes: u32,
}

impl Tile {
    /// Finds that the map is one for such a copy.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        let map = &self.map;
        match (&self.place, map.pixel_order()) {
            (TilePlace::Pixels { first, offsets }, Some(pixels)) => pixels.check_first(first, offsets),
            (TilePlace::Pixels { .. }, None) => {
                Err("a copy of pixels (`im2col`) by a map of boxes (`cuTensorMapEncodeTiled`)".to_owned())
            }
            (_, Some(_)) => Err("a copy of a box or of rows by a map of pixels (`cuTensorMapEncodeIm2col`)".to_owned()),
            (TilePlace::Rows { .. }, None) if map.box_sizes[1] != 1 => {
                Err(format!("a copy of four rows by a map whose boxes have {} rows, not 1", map.box_sizes[1]))
            }
            _ if map.elem == TensorElem::B4 && self.column() % 2 != 0 => {
                Err(format!("a copy of 4-bit elements from column {} on, which is within a byte", self.column()))
            }
            _ => Ok(()),
        }
    }

    /// The coordinate of dimension 0.
    fn column(&self) -> i32 {
        match &self.place {
            TilePlace::Box(at) => at[0],
            TilePlace::Rows { column, .. } => *column,
            TilePlace::Pixels { first, .. } => first[0],
        }
    }

    /// Bytes of the copy, which are those that a barrier counts.
    pub fn bytes(&self) -> u32 {
        match self.place {
            TilePlace::Rows { .. } => self.map.row_bytes().saturating_mul(GATHERED),
            _ => self.map.box_bytes(),
        }
    }

    /// The bytes of the tile from byte `from` on that are one run in global memory, or are not there: all of
    /// them as far as the end of a row, several rows where these lie one behind the other, until there are
    /// `most` at least.
    pub fn run(&self, from: u32, most: u32) -> TileRun {
        let mut run = self.in_row(from);
        let row = self.map.row_bytes();
        let end = self.bytes();
        let mut next = from + run.bytes;
        while let Some(global) = run.global
            && run.bytes < most
            && next < end
            && next.is_multiple_of(row)
        {
            let more = self.in_row(next);
            if more.global != Some(global + u64::from(run.bytes)) {
                break;
            }
            run.bytes += more.bytes;
            next += more.bytes;
        }
        run
    }

    /// The same within a row.
    fn in_row(&self, from: u32) -> TileRun {
        let map = &self.map;
        let (row, bits) = (map.row_bytes(), i64::from(map.elem.bits()));
        let (number, in_row) = (from / row, from % row);
        let rest = i64::from(row - in_row);
        let (address, column) = match &self.place {
            TilePlace::Box(at) => (self.box_row(at, number), at[0]),
            TilePlace::Rows { column, rows } => {
                let at = i64::from(rows[(number % GATHERED) as usize]);
                (self.row_at(|_| at), *column)
            }
            TilePlace::Pixels { first, offsets } => {
                // A map without pixels was refused.
                let at = map.pixel_order().map(|pixels| pixels.pixel(first, offsets, number));
                (at.and_then(|at| self.row_at(|d| at[d])), first[0])
            }
        };
        let Some(address) = address else { return TileRun { global: None, bytes: rest as u32 } };
        // Where the first byte lies in its row of the tensor.
        let first = i64::from(column) * bits / 8 + i64::from(in_row);
        let end = i64::from(map.sizes[0]) * bits / 8;
        match first {
            ..0 => TileRun { global: None, bytes: rest.min(-first) as u32 },
            _ if first >= end => TileRun { global: None, bytes: rest as u32 },
            _ => TileRun { global: Some(address + first as u64), bytes: rest.min(end - first) as u32 },
        }
    }

    /// The address of row `number` of the box at these coordinates, of column 0 of its tensor.
    #[inline]
    fn box_row(&self, at: &[i32; 5], mut number: u32) -> Option<u64> {
        let map = &self.map;
        self.row_at(|d| {
            let of = map.copied(d);
            let at = i64::from(at[d]) + i64::from(number % of * map.steps[d]);
            number /= of;
            at
        })
    }

    /// The address of column 0 of the row at these coordinates of dimensions 1 and up, if the tensor has it.
    #[inline]
    fn row_at(&self, mut coordinate: impl FnMut(usize) -> i64) -> Option<u64> {
        let map = &self.map;
        (1..usize::from(map.dimensions)).try_fold(map.address, |address, d| {
            let at = coordinate(d);
            let inside = (0..i64::from(map.sizes[d])).contains(&at);
            inside.then(|| address + at as u64 * map.strides[d - 1])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::PixelBox;
    use super::super::tests::map;
    use super::*;

    /// Addresses of all elements of a tile; none of those that are not there.
    fn elements(tile: &Tile) -> Vec<Option<u64>> {
        let (mut found, mut from) = (Vec::new(), 0);
        while from < tile.bytes() {
            let run = tile.run(from, 128);
            assert!(run.bytes > 0 && run.bytes.is_multiple_of(4));
            found.extend((0..run.bytes / 4).map(|i| run.global.map(|global| global + 4 * u64::from(i))));
            from += run.bytes;
        }
        found
    }

    #[test]
    fn elements_of_4_bits_lie_two_a_byte() {
        let of = |sizes: u32, at: [i32; 2]| {
            let (sizes, box_sizes) = ([sizes, 3, 1, 1, 1], [32, 2, 1, 1, 1]);
            let elem = TensorElem::B4;
            let map =
                TensorMap { dimensions: 2, elem, sizes, box_sizes, strides: [32, 0, 0, 0], steps: [1; 5], ..map() };
            Tile { map, place: TilePlace::Box([at[0], at[1], 0, 0, 0]) }
        };
        let tile = of(64, [32, 1]);
        assert_eq!((tile.map.check(), tile.check(), tile.bytes()), (Ok(()), Ok(()), 32));
        let first = tile.map.address + 32 + 16;
        assert_eq!([0, 16].map(|from| tile.run(from, 16).global), [Some(first), Some(first + 32)]);
        assert_eq!(of(64, [32, 2]).run(16, 16), TileRun { global: None, bytes: 16 }, "behind the last row");
        // The row of a box ends 8 elements behind that of the tensor.
        let beyond = of(64, [40, 0]);
        assert_eq!(beyond.run(0, 1), TileRun { global: Some(beyond.map.address + 20), bytes: 12 });
        assert_eq!(beyond.run(12, 1), TileRun { global: None, bytes: 4 });
        assert!(of(64, [33, 0]).check().is_err_and(|what| what.contains("within a byte")));
        assert!(of(63, [0, 0]).map.check().is_err_and(|what| what[0].contains("an even number")));
    }

    /// Every byte of every box beside a statement by elements.
    #[test]
    fn runs_are_the_elements_of_the_box_and_those_outside_are_not_there() {
        assert_eq!(map().box_bytes(), 4 * 4 * 2 * 2);
        for corner in [[0, 0, 0], [8, 8, 2], [-2, -2, -1], [9, 0, 0], [10, 0, 0], [-4, 9, 1], [3, 1, 1]] {
            let mut expected = Vec::new();
            for z in 0..2i64 {
                for y in [0i64, 2] {
                    for x in 0..4i64 {
                        let at = [x + i64::from(corner[0]), y + i64::from(corner[1]), z + i64::from(corner[2])];
                        let inside = at.iter().zip([10, 10, 3]).all(|(at, size)| (0..size).contains(at));
                        expected.push(inside.then(|| 0x1_0000_0000 + (at[0] * 4 + at[1] * 64 + at[2] * 640) as u64));
                    }
                }
            }
            let tile = Tile { map: map(), place: TilePlace::Box([corner[0], corner[1], corner[2], 0, 0]) };
            assert_eq!(elements(&tile), expected, "{corner:?}");
        }
    }

    #[test]
    fn rows_that_lie_one_behind_the_other_are_one_run() {
        let dense = TensorMap {
            strides: [64, 640, 0, 0],
            sizes: [16, 10, 3, 1, 1],
            box_sizes: [16, 4, 1, 1, 1],
            steps: [1; 5],
            ..map()
        };
        let tile = Tile { map: dense, place: TilePlace::Box([0, 2, 0, 0, 0]) };
        assert_eq!(tile.run(0, 128), TileRun { global: Some(0x1_0000_0080), bytes: 128 });
        assert_eq!(tile.run(64, 1024), TileRun { global: Some(0x1_0000_00c0), bytes: 192 });
        // Rows 4 and 5 of four, and pixels of a row.
        let rows = TensorMap { dimensions: 2, box_sizes: [16, 1, 1, 1, 1], ..dense };
        let tile = Tile { map: rows, place: TilePlace::Rows { column: 0, rows: [9, 4, 5, 5] } };
        assert_eq!(tile.run(0, 1024), TileRun { global: Some(0x1_0000_0240), bytes: 64 });
        assert_eq!(tile.run(64, 1024), TileRun { global: Some(0x1_0000_0100), bytes: 128 });
        let pixels = PixelBox { pixels: 12, lower: [0; 3], upper: [0; 3] };
        let pixels = TensorMap { box_sizes: [16, 1, 1, 1, 1], im2col: Some(pixels), ..dense };
        let tile = Tile { map: pixels, place: TilePlace::Pixels { first: [0, 8, 0, 0, 0], offsets: [0; 3] } };
        assert_eq!(tile.run(0, 1024), TileRun { global: Some(0x1_0000_0200), bytes: 12 * 64 });
    }

    #[test]
    fn four_rows_are_those_that_are_named_and_those_outside_are_not_there() {
        let map = TensorMap { dimensions: 2, box_sizes: [8, 1, 1, 1, 1], steps: [1; 5], ..map() };
        let rows = [7, -1, 10, 7];
        let tile = Tile { map, place: TilePlace::Rows { column: 4, rows } };
        assert_eq!((tile.check(), tile.bytes()), (Ok(()), 4 * 8 * 4));
        let at = |row: i32, column: u64| {
            ((0..10).contains(&row) && column < 10).then(|| 0x1_0000_0000 + row as u64 * 64 + column * 4)
        };
        let expected: Vec<_> = rows.iter().flat_map(|&row| (4..12).map(move |column| at(row, column))).collect();
        assert_eq!(elements(&tile), expected);
        let tall = Tile { map: TensorMap { box_sizes: [8, 2, 1, 1, 1], ..map }, ..tile };
        assert_eq!(tall.check().unwrap_err(), "a copy of four rows by a map whose boxes have 2 rows, not 1");
    }

    /// Pixels beside loops over all that a convolution takes.
    #[test]
    fn pixels_are_those_of_loops_over_images_slices_rows_and_columns() {
        let sizes = [4i64, 5, 4, 3, 2];
        let strides = [16u64, 80, 320, 960];
        for (lower, upper, steps) in [
            ([0, 0, 0], [0, 0, 0], [1, 1, 1]),
            ([-1, -1, -1], [-1, -1, -1], [1, 1, 1]),
            ([-1, 0, 1], [1, -2, 0], [2, 1, 1]),
            ([0, -2, 0], [-1, 1, 1], [3, 2, 2]),
        ] {
            for n in 3..=5usize {
                // All pixels of two images, and the address of the element beside each.
                let offsets = [2u16, 1, 0];
                let last = n - 1;
                let range = |d: usize| match d {
                    _ if d > last => vec![0],
                    _ if d == last => (0..2).collect(),
                    _ => (lower[d - 1]..sizes[d] + upper[d - 1]).step_by(steps[d - 1] as usize).collect::<Vec<_>>(),
                };
                let mut all = Vec::new();
                for c4 in range(4) {
                    for c3 in range(3) {
                        for c2 in range(2) {
                            all.extend(range(1).into_iter().map(|c1| [0, c1, c2, c3, c4]));
                        }
                    }
                }
                let mut map = TensorMap {
                    dimensions: n as u8,
                    strides,
                    sizes: sizes.map(|size| size as u32),
                    box_sizes: [4, 1, 1, 1, 1],
                    steps: [1, steps[0] as u32, steps[1] as u32, steps[2] as u32, 1],
                    im2col: Some(PixelBox {
                        pixels: 17,
                        lower: lower.map(|corner| corner as i16),
                        upper: upper.map(|corner| corner as i16),
                    }),
                    ..map()
                };
                map.sizes[last] = 2;
                map.steps[last] = 1;
                assert_eq!(map.check(), Ok(()));
                for (number, first) in all.iter().enumerate() {
                    let first = first.map(|at| at as i32);
                    let tile = Tile { map, place: TilePlace::Pixels { first, offsets } };
                    assert_eq!((tile.check(), tile.bytes()), (Ok(()), 17 * 16));
                    // Behind the last image there is nothing.
                    let expected = (number..number + 17).flat_map(|number| {
                        let address = all.get(number).and_then(|at| {
                            (1..n).try_fold(0x1_0000_0000, |address, d| {
                                let at = at[d] + if d < last { i64::from(offsets[d - 1]) } else { 0 };
                                let size = if d == last { 2 } else { sizes[d] };
                                (0..size).contains(&at).then(|| address + at as u64 * strides[d - 1])
                            })
                        });
                        (0..4).map(move |c| address.map(|address| address + 4 * c))
                    });
                    assert_eq!(elements(&tile), expected.collect::<Vec<_>>(), "{n} dimensions from {first:?}");
                }
            }
        }
    }

    #[test]
    fn copies_by_a_map_of_the_other_kind_are_refused() {
        let boxes = Tile { map: map(), place: TilePlace::Pixels { first: [0; 5], offsets: [0; 3] } };
        let told = "a copy of pixels (`im2col`) by a map of boxes (`cuTensorMapEncodeTiled`)";
        assert_eq!(boxes.check().unwrap_err(), told);
        let pixels = PixelBox { pixels: 4, lower: [-1; 3], upper: [-1; 3] };
        let map = TensorMap { box_sizes: [4, 1, 1, 1, 1], im2col: Some(pixels), ..map() };
        let told = "a copy of a box or of rows by a map of pixels (`cuTensorMapEncodeIm2col`)";
        for place in [TilePlace::Box([0; 5]), TilePlace::Rows { column: 0, rows: [0; 4] }] {
            assert_eq!(Tile { map, place }.check().unwrap_err(), told);
        }
        let at = |w, offset| {
            let place = TilePlace::Pixels { first: [0, w, 0, 0, 0], offsets: [offset, 0, 0] };
            Tile { map, place }.check()
        };
        assert_eq!([at(-1, 0), at(8, u16::MAX)], [Ok(()), Ok(())]);
        for w in [-2, 9] {
            let told = format!("at {w} of dimension 1, outside of the map's box of pixels: -1 to 8");
            assert!(at(w, 0).unwrap_err().contains(&told), "{:?}", at(w, 0));
        }
    }
}
