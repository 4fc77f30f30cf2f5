//! Every parameter of every log: its default and the bounds of its range are accepted, what lies beyond is refused.

use isotherm::registry::audit;
use isotherm_sfs::drive::DRIVES;
use isotherm_sfs::options::LOGS;

#[test]
fn every_range_is_enforced_as_it_is_declared() {
    assert_eq!([audit(LOGS), audit(DRIVES)].concat(), Vec::<String>::new());
}
