//! Every parameter of every table: its default and the bounds of its range are accepted, what lies beyond is refused by an
//! error that names the key.

use isotherm::dram::buffer::BUFFERS;
use isotherm::dram::partition::SPLITS;
use isotherm::ftl::FTLS;
use isotherm::hotness::SCHEMES;
use isotherm::nand::timing::TIMINGS;
use isotherm::placement::PLACEMENTS;
use isotherm::registry::audit;
use isotherm::victim::VICTIMS;

#[test]
fn every_range_is_enforced_as_it_is_declared() {
    let faults =
        [audit(VICTIMS), audit(PLACEMENTS), audit(SCHEMES), audit(FTLS), audit(BUFFERS), audit(SPLITS), audit(TIMINGS)];
    assert_eq!(faults.concat(), Vec::<String>::new());
}
