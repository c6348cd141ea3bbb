//! What a read finds of the stores that a controller holds.

use super::*;

/// Bytes 0 and 1 of line 128 as a read of `mask` sees them; 99 where it finds no store.
fn seen(mc: &Controller, mask: u128) -> [u8; 2] {
    let mut bytes = [99; 128];
    assert!(mc.handler.overlay(128, mask, &mut bytes));
    [bytes[0], bytes[1]]
}

fn stores(mc: &mut Controller, tag: Tag, mask: u128, byte: u8) {
    let copied = Copied { mask, ..copied(128, byte) };
    mc.hears(Peer::Sm(tag.order), RegionMessage::Store(tag, 0, copied));
}

#[test]
fn a_read_takes_the_store_of_the_youngest_region_whatever_came_last() {
    let mut mc = Controller::new(&spec(|_| {}), 0, 1);
    for (region, mask, byte) in [(1, 0b01, 11), (2, 0b10, 12), (0, 0b11, 10)] {
        stores(&mut mc, tag(region), mask, byte);
    }
    assert_eq!(seen(&mc, 0b11), [11, 12]);
    assert_eq!(seen(&mc, 0b10), [99, 12], "only the bytes that are read");
}

#[test]
fn a_read_takes_the_last_of_a_regions_own_stores() {
    let mut mc = Controller::new(&spec(|_| {}), 0, 1);
    for (region, byte) in [(1, 11), (0, 10), (1, 21), (0, 20)] {
        stores(&mut mc, tag(region), 0b11, byte);
    }
    assert_eq!(seen(&mc, 0b11), [21, 21]);
}

#[test]
fn a_read_takes_the_last_store_where_numbers_are_of_several_orders() {
    let mut mc = Controller::new(&spec(|spec| spec.order = RegionOrder::Sm), 0, 1);
    stores(&mut mc, Tag { order: 0, ..tag(1) }, 0b11, 11);
    stores(&mut mc, Tag { order: 1, ..tag(0) }, 0b01, 10);
    assert_eq!(seen(&mc, 0b11), [10, 11], "the numbers of two SMs say nothing of each other");
}
