// SPDX-License-Identifier: Apache-2.0
//! The Python module `penstock._native`: the simulator as seen from `python/penstock`.
//!
//! Scenarios go in as text; summaries come out as JSON, tables as CSV text that polars reads. Their
//! meaning is defined once, in `penstock-sim`. `pool` runs tasks on threads; the functions of the
//! module are below, in the order of `python/penstock/_native.pyi`.

mod pool;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use penstock_scenario::units::Time;
use penstock_scenario::{Congestion, Origin, Problem, Profile};
use penstock_sim::run::{Layout, flow_records, summaries};
use penstock_sim::simulation::{ENDLESS, Record, TransferCounters, WaitsOf};
use penstock_sim::{Cores, Inputs, Outcome, Scenario, run_on};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

pyo3::import_exception!(penstock.errors, RunError);
pyo3::import_exception!(penstock.errors, ScenarioError);

/// One run as Python gets it: scheme, seed, summary (JSON), flows, queue samples, windows, jobs,
/// packets, events (CSV).
type Row<'py> = (
    String,
    u64,
    String,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

/// The JSON Schema of scenario files.
#[pyfunction]
fn schema() -> String {
    penstock_scenario::json_schema()
}

/// The built-in schemes as a JSON object, by name.
#[pyfunction]
fn schemes() -> PyResult<String> {
    json(penstock_scenario::builtin_schemes())
}

/// The schemes that penstockd can attach to a port.
#[pyfunction]
fn deployable() -> Vec<&'static str> {
    penstock_scenario::deployable().collect()
}

/// All definitions of `core/` as a JSON object: parameters, counters, reasons to pass a packet.
#[pyfunction]
fn definitions() -> String {
    penstock_scenario::definitions()
}

/// The scenario with its defaults written out, as TOML; the files it names are read and checked.
///
/// `to_csv` gives the text of a trace that is not CSV.
#[pyfunction]
fn validate(
    text: &str,
    origin: &str,
    overrides: Vec<(String, String)>,
    to_csv: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let scenario = parse(text, origin, &overrides)?;
    read_inputs(&scenario, origin, to_csv)?;
    Ok(scenario.resolved())
}

/// The scenario's hosts, switches and ports as JSON, for those who build them of real parts.
///
/// `to_csv` gives the text of a trace that is not CSV.
#[pyfunction]
fn layout(text: &str, origin: &str, to_csv: &Bound<'_, PyAny>) -> PyResult<String> {
    let scenario = parse(text, origin, &[])?;
    let inputs = read_inputs(&scenario, origin, to_csv)?;
    json(&Layout::of(&scenario, &inputs))
}

/// A transfer that another program than the simulator or penstock-traffic has measured: traffic,
/// number, source, destination, start, end, stop (seconds), bytes, bytes delivered, retransmits.
type Transfer = (
    String,
    u32,
    String,
    String,
    f64,
    Option<f64>,
    Option<f64>,
    Option<u64>,
    u64,
    u64,
);

/// Such transfers as the simulator sums up its own: groups by traffic (JSON) and flows (CSV).
#[pyfunction]
fn summarize<'py>(
    py: Python<'py>,
    text: &str,
    origin: &str,
    transfers: Vec<Transfer>,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let scenario = parse(text, origin, &[])?;
    let hosts = scenario.fabric.hosts();
    let index = |kind: &str, name: &str, place: Option<usize>| {
        let place = place.and_then(|place| u32::try_from(place).ok());
        place.ok_or_else(|| ScenarioError::new_err(format!("{origin}: no {kind} \"{name}\"")))
    };
    let host = |name: &str| index("host", name, hosts.iter().position(|host| host == name));
    let time = |seconds: f64| Time::from_nanos((seconds * 1e9).round() as u64);
    let record = |transfer: Transfer| -> PyResult<Record> {
        let (traffic, number, source, destination, start, end, stopped, bytes, delivered, resent) =
            transfer;
        Ok(Record {
            traffic: index("traffic", &traffic, scenario.traffic.get_index_of(&traffic))?,
            number,
            source: host(&source)?,
            destination: host(&destination)?,
            start: time(start),
            end: end.map(time),
            stopped: stopped.map(time),
            bytes: bytes.unwrap_or(ENDLESS),
            total: TransferCounters {
                delivered,
                retransmits: resent,
                ..TransferCounters::default()
            },
            before: TransferCounters::default(),
            silence: Time::ZERO,
            request: None,
            is_opening: false,
            ideal: None,
            waits_of: WaitsOf::Uncounted,
        })
    };
    let records: Vec<Record> = transfers.into_iter().map(record).collect::<PyResult<_>>()?;
    let groups = json(&summaries(&scenario, &records, &[], &[]))?;
    let flows = csv(&flow_records(&scenario, &records))?;
    Ok((groups, PyBytes::new(py, &flows)))
}

/// Simulates every (scheme, seed) on `jobs` threads; the results are in the order of the tasks. A
/// large fabric uses the threads that fewer tasks leave over; its results do not depend on them.
///
/// `progress(fraction, label)` is called about ten times a second from the calling thread.
#[pyfunction]
fn run<'py>(
    py: Python<'py>,
    text: &str,
    origin: &str,
    tasks: Vec<(String, u64)>,
    jobs: usize,
    to_csv: &Bound<'py, PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Row<'py>>> {
    let scenario = parse(text, origin, &[])?;
    let inputs = read_inputs(&scenario, origin, to_csv)?;
    let report = |fraction: f64, label: &str| match &progress {
        Some(callback) => callback.call1(py, (fraction, label)).map(drop),
        None => Ok(()),
    };
    let cores = Cores {
        threads: jobs / tasks.len().max(1),
        ..Cores::default()
    };
    let results = pool::run(py, &tasks, jobs, report, |(scheme, seed), progress| {
        let run = || run_on(cores, &scenario, &inputs, scheme, *seed, progress);
        let outcome = caught(run)?.map_err(|error| error.to_string())?;
        Ok(Tables::of(&outcome, congestion(&scenario, scheme)))
    })?;
    tasks
        .into_iter()
        .zip(results)
        .map(|((scheme, seed), tables)| {
            let tables = tables.map_err(|error: String| {
                RunError::new_err(format!("{scheme}, seed {seed}: {error}"))
            })??;
            let flows = PyBytes::new(py, &tables.flows);
            let queues = PyBytes::new(py, &tables.queues);
            let windows = PyBytes::new(py, &tables.windows);
            let jobs = PyBytes::new(py, &tables.jobs);
            let packets = PyBytes::new(py, &tables.packets);
            let events = PyBytes::new(py, &tables.events);
            Ok((
                scheme,
                seed,
                tables.summary,
                flows,
                queues,
                windows,
                jobs,
                packets,
                events,
            ))
        })
        .collect()
}

/// What `work` gives, or its message when it panicked: one run's bug ends that run alone.
fn caught<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic: Box<dyn Any + Send>| {
        let literal = panic.downcast_ref::<&str>().copied();
        let message = literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        format!(
            "a bug of the simulator: {}",
            message.unwrap_or("it panicked")
        )
    })
}

fn parse(text: &str, origin: &str, overrides: &[(String, String)]) -> PyResult<Scenario> {
    Scenario::parse(text, Path::new(origin), overrides).map_err(|error| {
        let problem = |problem: &Problem| -> PyProblem {
            (
                line_of(problem),
                error.line(problem),
                problem.key.clone(),
                problem.what.clone(),
            )
        };
        let problems: Vec<PyProblem> = error.problems.iter().map(problem).collect();
        ScenarioError::new_err((error.to_string(), problems))
    })
}

/// A problem as Python gets it: its line in the file, as one line of text, its key, and what is wrong.
type PyProblem = (Option<usize>, String, String, String);

fn line_of(problem: &Problem) -> Option<usize> {
    match problem.at {
        Origin::Line(line) => Some(line),
        Origin::Override(_) | Origin::BuiltIn => None,
    }
}

fn read_inputs(scenario: &Scenario, origin: &str, to_csv: &Bound<'_, PyAny>) -> PyResult<Inputs> {
    let folder = Path::new(origin).parent().unwrap_or(Path::new(""));
    let convert = |file: &Path| -> Result<String, String> {
        let text = to_csv.call1((file,)).and_then(|text| text.extract());
        text.map_err(|error| error.value(to_csv.py()).to_string())
    };
    Inputs::read(scenario, folder, &convert).map_err(|e| ScenarioError::new_err(e.to_string()))
}

/// The congestion control that the hosts run under a scheme.
fn congestion(scenario: &Scenario, scheme: &str) -> Congestion {
    let own = scenario.scheme.get(scheme).map(|scheme| &scheme.tcp);
    let chosen = own
        .and_then(|tcp| tcp.congestion)
        .or(scenario.tcp.congestion);
    let profile = own
        .and_then(|tcp| tcp.profile)
        .or(scenario.tcp.profile)
        .unwrap_or_default();
    chosen.unwrap_or(match profile {
        Profile::NewrenoNs2 => Congestion::Newreno,
        Profile::Linux | Profile::Linux318 => Congestion::Cubic,
    })
}

/// An [`Outcome`] as text, made on the worker's thread.
struct Tables {
    summary: String,
    flows: Vec<u8>,
    queues: Vec<u8>,
    windows: Vec<u8>,
    jobs: Vec<u8>,
    packets: Vec<u8>,
    events: Vec<u8>,
}

impl Tables {
    fn of(outcome: &Outcome, tcp: Congestion) -> PyResult<Tables> {
        #[derive(Serialize)]
        struct Summary<'a, G, P, C, F> {
            tcp: Congestion,
            groups: &'a G,
            ports: &'a P,
            #[serde(skip_serializing_if = "Option::is_none")]
            controller: &'a Option<C>,
            delayed_acks: u64,
            performance: &'a F,
        }
        let Outcome {
            groups,
            ports,
            controller,
            flows,
            jobs,
            queues,
            windows,
            packets,
            events,
            performance,
            delayed_acks,
            drops: _,
        } = outcome;
        Ok(Tables {
            summary: json(&Summary {
                tcp,
                groups,
                ports,
                controller,
                delayed_acks: *delayed_acks,
                performance,
            })?,
            flows: csv(flows)?,
            queues: csv(queues)?,
            windows: csv(windows)?,
            jobs: csv(jobs)?,
            packets: csv(packets)?,
            events: csv(events)?,
        })
    }
}

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

fn csv<T: Serialize>(records: &[T]) -> PyResult<Vec<u8>> {
    let failed = |e: csv::Error| PyRuntimeError::new_err(e.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.serialize(record).map_err(failed)?;
    }
    writer
        .into_inner()
        .map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__commit__", env!("PENSTOCK_COMMIT"))?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(deployable, module)?)?;
    module.add_function(wrap_pyfunction!(definitions, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(layout, module)?)?;
    module.add_function(wrap_pyfunction!(summarize, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)
}
