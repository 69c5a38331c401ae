// SPDX-License-Identifier: Apache-2.0
//! The Python module `penstock._native`: the simulator as seen from `python/penstock`.
//!
//! It only carries things across: scenarios go in as text, summaries come out as JSON, tables as
//! CSV text that polars reads. What they mean is said once, in `penstock-sim`.

mod pool;

use std::path::Path;

use penstock_sim::{Outcome, Scenario, scenario};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

pyo3::import_exception!(penstock.errors, RunError);
pyo3::import_exception!(penstock.errors, ScenarioError);

type Overrides = Vec<(String, String)>;

/// One run as Python gets it: scheme, seed, summary (JSON), flows (CSV), queue samples (CSV).
type Row<'py> = (
    String,
    u64,
    String,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

fn parse(text: &str, origin: &str, overrides: &[(String, String)]) -> PyResult<Scenario> {
    Scenario::parse(text, Path::new(origin), overrides)
        .map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// The JSON Schema of scenario files.
#[pyfunction]
fn schema() -> String {
    scenario::json_schema()
}

/// The built-in schemes as a JSON list.
#[pyfunction]
fn schemes() -> PyResult<String> {
    json(&scenario::builtin_schemes())
}

/// The scenario with every default written out, as TOML.
#[pyfunction]
fn validate(text: &str, origin: &str, overrides: Overrides) -> PyResult<String> {
    Ok(parse(text, origin, &overrides)?.resolved())
}

/// Simulates every (scheme, seed) on `jobs` threads; the results are in the order of the tasks.
///
/// `progress(fraction, label)` is called about ten times a second from the calling thread.
#[pyfunction]
fn run<'py>(
    py: Python<'py>,
    text: &str,
    origin: &str,
    tasks: Vec<(String, u64)>,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Row<'py>>> {
    let scenario = parse(text, origin, &[])?;
    let report = |fraction: f64, label: &str| match &progress {
        Some(callback) => callback.call1(py, (fraction, label)).map(drop),
        None => Ok(()),
    };
    let results = pool::run(py, &tasks, jobs, report, |(scheme, seed), progress| {
        let outcome = penstock_sim::run(&scenario, scheme, *seed, progress)?;
        Ok(Tables::of(&outcome))
    })?;
    tasks
        .into_iter()
        .zip(results)
        .map(|((scheme, seed), tables)| {
            let tables = tables.map_err(|e: penstock_sim::Error| {
                RunError::new_err(format!("{scheme}, seed {seed}: {e}"))
            })??;
            let flows = PyBytes::new(py, &tables.flows);
            let queues = PyBytes::new(py, &tables.queues);
            Ok((scheme, seed, tables.summary, flows, queues))
        })
        .collect()
}

/// An [`Outcome`] as text, made on the worker's thread.
struct Tables {
    summary: String,
    flows: Vec<u8>,
    queues: Vec<u8>,
}

impl Tables {
    fn of(outcome: &Outcome) -> PyResult<Tables> {
        #[derive(Serialize)]
        struct Summary<'a, G, P, F> {
            groups: &'a G,
            ports: &'a P,
            performance: &'a F,
        }
        let Outcome {
            groups,
            ports,
            flows,
            queues,
            performance,
            ..
        } = outcome;
        Ok(Tables {
            summary: json(&Summary {
                groups,
                ports,
                performance,
            })?,
            flows: csv(flows)?,
            queues: csv(queues)?,
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
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(schemes, module)?)?;
    module.add_function(wrap_pyfunction!(validate, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)
}
