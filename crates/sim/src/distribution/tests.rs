// SPDX-License-Identifier: Apache-2.0
use super::*;
use penstock_scenario::units::Time;

fn sample_mean(sizes: &FlowSize, samples: u32) -> f64 {
    let mut rng = Rng::new(7, 0);
    (0..samples)
        .map(|_| sizes.sample(&mut rng) as f64)
        .sum::<f64>()
        / f64::from(samples)
}

#[test]
fn means_agree_with_samples() {
    for (sizes, tolerance) in [
        (FlowSize::Fixed(11_500), 0.0),
        (FlowSize::Uniform { min: 1, max: 3 }, 0.005),
        (
            FlowSize::Uniform {
                min: 1_000,
                max: 99_000,
            },
            0.005,
        ),
        (FlowSize::Exponential { mean: 50_000.0 }, 0.01),
        (
            FlowSize::Pareto {
                shape: 1.2,
                min: 1_000.0,
                max: 1e6,
            },
            0.02,
        ),
        (FlowSize::Empirical(Cdf::web_search()), 0.02),
        (
            FlowSize::Empirical(Cdf::named("datamining").expect("published")),
            0.05,
        ),
    ] {
        let (mean, sampled) = (sizes.mean(), sample_mean(&sizes, 200_000));
        assert!(
            (sampled / mean - 1.0).abs() <= tolerance,
            "{sizes:?}: {mean}, sampled {sampled}"
        );
    }
}

/// The scenario's names are those of the points here.
#[test]
fn published_sizes_have_points() {
    let names: Vec<&str> = workloads::WORKLOADS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, penstock_scenario::PUBLISHED_SIZES);
}

/// Summed by hand over the pieces.
#[test]
fn means_by_hand() {
    // 750 + 750 + 2500 + 4000 + 8450 + 9800 + 60 k + 150 k + 350 k + 525 k + 600 k
    assert!((Cdf::web_search().mean() - 1_711_250.0).abs() < 1e-6);
    let halves = Cdf::parse("x", "0 0\n10 0.5\n30 1").expect("valid");
    assert_eq!(halves.mean(), 0.5 * 5.0 + 0.5 * 20.0);
    // Bounded Pareto of shape 2 on 1..2: 2 (1 - 1/2) / (1 - 1/4) = 4/3.
    let pareto = FlowSize::Pareto {
        shape: 2.0,
        min: 1.0,
        max: 2.0,
    };
    assert!((pareto.mean() - 4.0 / 3.0).abs() < 1e-12);
    // Of shape 1: ln 2 / (1 - 1/2).
    let harmonic = FlowSize::Pareto {
        shape: 1.0,
        min: 1.0,
        max: 2.0,
    };
    assert!((harmonic.mean() - 2.0 * std::f64::consts::LN_2).abs() < 1e-12);
}

#[test]
fn quantiles_are_linear_between_points() {
    let cdf = Cdf::web_search();
    assert_eq!(cdf.quantile(0.0), 0.0);
    assert_eq!(cdf.quantile(0.15), 10_000.0);
    assert!((cdf.quantile(0.65) - 600_000.0).abs() < 1e-3);
    assert_eq!(cdf.quantile(1.0), 30e6);
    let small = FlowSize::Empirical(cdf);
    let mut rng = Rng::new(1, 0);
    let below = (0..100_000)
        .filter(|_| small.sample(&mut rng) <= 80_000)
        .count();
    assert!((below as f64 / 1e5 - 0.53).abs() < 0.01);
}

#[test]
fn jumps_and_gaps() {
    // Half the flows are of 100 bytes exactly, the others from 200 to 300.
    let cdf = Cdf::parse("x", "100 0\n100 .5\n200 .5\n300 1").expect("valid");
    assert_eq!(cdf.quantile(0.2), 100.0);
    assert_eq!(cdf.quantile(0.5), 200.0);
    assert_eq!(cdf.quantile(0.75), 250.0);
    assert_eq!(cdf.mean(), 175.0);
    let flat_end = Cdf::parse("x", "0 0\n100 1\n200 1").expect("valid");
    assert_eq!(flat_end.quantile(0.5), 50.0);
    assert_eq!(flat_end.mean(), 50.0);
}

#[test]
fn files_with_comments() {
    let cdf = Cdf::parse("x", "# bytes p\n\n0 0 # start\n1e3 0.5\r\n  2000\t1\n").expect("valid");
    assert_eq!(cdf.points(), [(0.0, 0.0), (1000.0, 0.5), (2000.0, 1.0)]);
}

#[test]
fn errors_name_place_cause_and_remedy() {
    let error = |text: &str| {
        Cdf::parse("flows.cdf", text)
            .expect_err("refused")
            .to_string()
    };
    for (text, expected) in [
        ("", "flows.cdf: holds no points"),
        ("# 1\n0 0 0", "flows.cdf:2: has 3 fields; write two"),
        ("0 0\nten 1", "flows.cdf:2: size \"ten\" is not a number"),
        (
            "0 0\n10 nan",
            "flows.cdf:2: probability \"nan\" is not a number",
        ),
        (
            "0 0\n-1 1",
            "flows.cdf:2: size \"-1\" is not a number of 0 or more",
        ),
        (
            "0 0\n10 50",
            "flows.cdf:2: probability 50 is above 1; divide percentages by 100",
        ),
        (
            "0 0.1\n10 1",
            "flows.cdf:1: the first probability is 0.1; it must be 0",
        ),
        (
            "0 0\n10 .5\n5 1",
            "flows.cdf:3: size 5 is below 10 before it; sort",
        ),
        (
            "0 0\n10 .5\n15 .4",
            "flows.cdf:3: probability 0.4 is below 0.5 before it",
        ),
        ("0 0\n10 .5\n10 .5", "flows.cdf:3: repeats the point"),
        (
            "0 0\n10 .5 # end\n\n",
            "flows.cdf:2: the last probability is 0.5; it must be 1",
        ),
        ("0 0\n0 1", "flows.cdf:2: the largest flow has 0 bytes"),
        (
            "0 0",
            "flows.cdf:1: the last probability is 0; it must be 1",
        ),
    ] {
        assert!(
            error(text).starts_with(expected),
            "{text:?}: {}",
            error(text)
        );
    }
    let missing = Cdf::load(std::path::Path::new("no/such.cdf")).expect_err("refused");
    assert!(
        missing
            .to_string()
            .starts_with("no/such.cdf: cannot read it"),
        "{missing}"
    );
}

#[test]
fn poisson_gaps() {
    let poisson = Poisson::new(1e6);
    let mut rng = Rng::new(11, 0);
    let gaps: Vec<f64> = (0..200_000)
        .map(|_| poisson.gap(&mut rng).0 as f64 / 1e6)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.01, "{mean}");
    let long = gaps.iter().filter(|&&gap| gap > 2.0).count() as f64 / gaps.len() as f64;
    assert!((long - 0.135_335).abs() < 0.003, "{long}");
    assert_eq!(Poisson::new(0.0).gap(&mut rng), Time::NEVER);
    assert_eq!(Poisson::new(f64::NAN).gap(&mut rng), Time::NEVER);
}

/// The same on every machine, or runs differ.
#[test]
fn samples_are_pinned() {
    let mut rng = Rng::new(42, 1);
    let mut take = |sizes: FlowSize| [(); 3].map(|()| sizes.sample(&mut rng));
    assert_eq!(
        take(FlowSize::Exponential { mean: 1e6 }),
        [225423, 2054425, 833181]
    );
    assert_eq!(
        take(FlowSize::Pareto {
            shape: 1.1,
            min: 1e3,
            max: 1e9
        }),
        [1080, 13255, 4245]
    );
    assert_eq!(
        take(FlowSize::Empirical(
            Cdf::named("datamining").expect("published")
        )),
        [996, 351, 618045]
    );
}
