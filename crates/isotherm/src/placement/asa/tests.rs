//! The placement over hand-made rounds of writes.

use super::*;

const COLD: StreamId = StreamId(2);

fn asa(parameters: &str, logical_pages: u32) -> Asa {
    let name = format!("asa:{parameters}").parse().unwrap();
    let options = AsaOptions::read(&Parameters::new(&name, &PARAMETERS).unwrap());
    Asa::new(options, logical_pages, 1, Keeps::InDram)
}

/// Writes pages in turn: `hot` pages every round, the others once in `every` rounds.
fn rounds(asa: &mut Asa, now: &mut u64, count: u32, hot: std::ops::Range<u32>, every: u32) {
    let pages = asa.pages.len() as u32;
    for round in 0..count {
        for lpn in (0..pages).filter(|lpn| hot.contains(lpn) || lpn % every == round % every) {
            asa.host(
                &HostWrite { lpn: Lpn(lpn), now: *now, rewrite: *now >= u64::from(pages) },
                &mut PageHistory::default(),
            );
            *now += 1;
        }
    }
}

fn stream_of_copy(asa: &mut Asa, lpn: u32) -> StreamId {
    asa.gc(&GcCopy { lpn: Lpn(lpn), now: 0, from: COLD, stamp: 0 }, &PageHistory::default())
}

#[test]
fn everything_is_cold_before_the_first_clustering_and_then_pages_part() {
    let mut asa = asa("samples=500", 1000);
    let mut now = 0;
    rounds(&mut asa, &mut now, 1, 0..1000, 1);
    assert_eq!(stream_of_copy(&mut asa, 5), COLD);
    rounds(&mut asa, &mut now, 200, 0..100, 20);
    assert!(asa.counters.clusterings >= 1);
    assert_eq!(stream_of_copy(&mut asa, 5), HOT);
    assert_eq!(stream_of_copy(&mut asa, 905), COLD);
    assert_eq!(asa.finite_pages, 1000);
}

#[test]
fn what_is_clustered_is_the_recency_of_the_sampled_pages_that_have_one() {
    for (samples, pages) in [(500, 300), (500, 1000), (3, 1000), (33, 1000), (999, 1000)] {
        for scale in ["raw", "log"] {
            let mut asa = asa(&format!("samples={samples},threshold=0,scale={scale}"), pages);
            let mut now = 0;
            rounds(&mut asa, &mut now, 1, 0..pages, 1);
            rounds(&mut asa, &mut now, 100, 0..50, 20);
            assert!(asa.counters.clusterings > 1);
            let lpns: std::collections::BTreeSet<u32> = asa.sample.lpns().iter().map(|lpn| lpn.0).collect();
            assert_eq!(lpns.len() as u32, samples.min(pages), "no page is sampled twice");
            assert_eq!(asa.sample.set().iter().collect::<Vec<_>>(), lpns.iter().copied().collect::<Vec<_>>());
            let mut expected = Histogram::new(asa.options.spacing());
            lpns.iter().for_each(|lpn| count(&mut expected, &asa.options, asa.pages[*lpn as usize].irr));
            assert_eq!(format!("{:?}", asa.sampled), format!("{expected:?}"), "{samples} of {pages}");
        }
    }
}

#[test]
fn the_sample_is_another_one_after_256_looks_whether_they_clustered_or_not() {
    for looks in [[1; 256].as_slice(), &[256], &[64; 4]] {
        let mut asa = asa("samples=640", 100_000);
        asa.draw(0);
        let before = asa.sample.set().clone();
        let kept = |asa: &Asa| asa.sample.lpns().iter().filter(|lpn| before.contains(lpn.0)).count();
        let (last, others) = looks.split_last().unwrap();
        others.iter().for_each(|looks| asa.draw(looks * 1000));
        assert!(looks.len() == 1 || kept(&asa) > 0);
        asa.draw(last * 1000);
        // Some pages are drawn again, and a page drawn that is sampled already changes nothing.
        assert!(kept(&asa) < 20, "{} of 640 pages are still sampled", kept(&asa));
    }
}

#[test]
fn a_hot_set_that_moves_is_followed() {
    for parameters in ["samples=500", "samples=500,scale=log,init=exact,miss_window=last_n,irr_bits=8,clock=all"] {
        let mut asa = asa(parameters, 1000);
        let mut now = 0;
        rounds(&mut asa, &mut now, 1, 0..1000, 1);
        rounds(&mut asa, &mut now, 200, 0..100, 20);
        rounds(&mut asa, &mut now, 400, 900..1000, 20);
        assert_eq!(stream_of_copy(&mut asa, 905), HOT, "{parameters}");
        assert_eq!(stream_of_copy(&mut asa, 5), COLD, "{parameters}");
    }
}

#[test]
fn without_updating_the_first_clustering_stays() {
    let mut asa = asa("samples=500,update_until=0,threshold=0", 1000);
    let mut now = 0;
    rounds(&mut asa, &mut now, 1, 0..1000, 1);
    rounds(&mut asa, &mut now, 200, 0..100, 20);
    let bounds = asa.bounds;
    rounds(&mut asa, &mut now, 200, 0..300, 3);
    assert_eq!((asa.counters.clusterings, asa.bounds), (1, bounds));
}

#[test]
fn clusters_that_were_learnt_stay_from_a_given_write_on() {
    let clusterings = |until: &str| {
        let mut asa = asa(&format!("samples=500,threshold=0,update_until={until}"), 1000);
        let mut now = 0;
        rounds(&mut asa, &mut now, 1, 0..1000, 1);
        rounds(&mut asa, &mut now, 100, 0..100, 20);
        let learnt = asa.counters.clusterings;
        rounds(&mut asa, &mut now, 100, 0..300, 3);
        (learnt, asa.counters.clusterings)
    };
    let (learnt, later) = clusterings("15500");
    assert!(learnt > 1 && later == learnt, "{learnt} and then {later}");
    assert!(clusterings("always").1 > later);
}

#[test]
fn a_start_by_address_holds_until_the_first_clustering() {
    let mut asa = asa("samples=500,starts_hot=10%", 1000);
    let streams = [99, 100, 999].map(|lpn| stream_of_copy(&mut asa, lpn).0);
    assert_eq!(streams, [HOT.0, HOT.0 + 1, HOT.0 + 1]);
    let mut now = 0;
    rounds(&mut asa, &mut now, 1, 0..1000, 1);
    rounds(&mut asa, &mut now, 200, 900..1000, 20);
    assert_eq!([950, 50].map(|lpn| stream_of_copy(&mut asa, lpn)), [HOT, COLD]);
}

#[test]
fn an_audit_finds_no_error_where_every_page_is_sampled_and_one_where_few_are() {
    let error = |samples: u32| {
        let mut asa = asa(&format!("samples={samples},audit=true,threshold=0"), 1000);
        let mut now = 0;
        rounds(&mut asa, &mut now, 1, 0..1000, 1);
        rounds(&mut asa, &mut now, 100, 0..100, 20);
        asa.counters.clustering_error().unwrap()
    };
    assert_eq!(error(1000), 0.0);
    assert!(error(6) > 0.01, "{}", error(6));
}

#[test]
fn copies_keep_the_recency_and_the_last_write() {
    let mut asa = asa("samples=500", 1000);
    let mut now = 0;
    rounds(&mut asa, &mut now, 1, 0..1000, 1);
    rounds(&mut asa, &mut now, 30, 0..100, 20);
    let before = asa.pages[7];
    stream_of_copy(&mut asa, 7);
    assert_eq!((asa.pages[7].irr, asa.pages[7].last_write), (before.irr, before.last_write));
}

#[test]
fn a_byte_holds_a_recency_within_an_eighth() {
    let mut codes = std::collections::BTreeSet::new();
    for irr in (0..32).flat_map(|e| [1u32 << e, (1 << e) + (1 << e >> 2), ((1u64 << (e + 1)) - 1) as u32]) {
        let kept = coded(irr);
        assert!(kept.abs_diff(irr) <= irr / 8, "{irr} is kept as {kept}");
        codes.insert(kept);
    }
    assert!(codes.len() <= 256);
}
