// SPDX-License-Identifier: Apache-2.0
//! The results: the simulator's tables, and what only a kernel has; written whole or not at all.

use crate::failure::{Failure, because};
use crate::kernel::KernelCounters;
use indexmap::IndexMap;
use penstock_sim::run::{
    FlowRecord, GroupSummary, JobRow, Performance, PortSummary, QueueSample, WindowRow,
};
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The contents of summary.json.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// The congestion control of the traffic, as scenarios call it; several are joined by commas.
    pub tcp: String,
    /// By traffic.
    pub groups: IndexMap<String, GroupSummary>,
    /// By port.
    pub ports: IndexMap<String, PortSummary>,
    /// Packets lost at all sampled ports together.
    pub drops: u64,
    /// What the run cost; `loop_s` is the generator's processor time, the packets' way through the
    /// kernel included as far as it was done on its account.
    pub performance: Performance,
    /// TCP's counters over the hosts' namespaces, to compare with the flows': they count both
    /// directions, and FINs.
    pub kernel: KernelCounters,
    /// Connections that failed without being stopped by the scenario.
    pub broken: u64,
    /// Where the run departs from the scenario; one line each.
    pub warnings: Vec<String>,
}

/// Everything that is written.
pub struct Results {
    /// summary.json.
    pub summary: Summary,
    /// flows.csv.
    pub flows: Vec<FlowRecord>,
    /// queues.csv.
    pub queues: Vec<QueueSample>,
    /// windows.csv.
    pub windows: Vec<WindowRow>,
    /// jobs.csv.
    pub jobs: Vec<JobRow>,
}

impl Results {
    /// Writes the files into `folder`: first under other names, so that a file with its right name is
    /// whole.
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        let written = (|| {
            std::fs::create_dir_all(folder)?;
            let summary = serde_json::to_vec_pretty(&self.summary)?;
            let files = [
                ("flows.csv", csv(&self.flows, FLOW_COLUMNS)?),
                ("queues.csv", csv(&self.queues, QUEUE_COLUMNS)?),
                ("windows.csv", csv(&self.windows, WINDOW_COLUMNS)?),
                ("jobs.csv", csv(&self.jobs, JOB_COLUMNS)?),
                ("summary.json", summary),
            ];
            let staged: Vec<(PathBuf, PathBuf)> = files
                .iter()
                .map(|(name, _)| (folder.join(format!(".{name}.part")), folder.join(name)))
                .collect();
            for ((part, _), (_, text)) in staged.iter().zip(&files) {
                let mut file = File::create(part)?;
                file.write_all(text)?;
                file.sync_all()?;
            }
            staged
                .iter()
                .try_for_each(|(part, whole)| std::fs::rename(part, whole))
        })();
        written.map_err(because::<std::io::Error>(folder.display()))
    }
}

/// Requires that the results can be written into `folder`, before the time of a run.
pub fn require_writable(folder: &Path) -> Result<(), Failure> {
    let is_new = !folder.exists();
    let written = (|| {
        std::fs::create_dir_all(folder)?;
        let probe = folder.join(".probe.part");
        File::create(&probe)?;
        std::fs::remove_file(&probe)?;
        if is_new {
            std::fs::remove_dir(folder)?;
        }
        Ok::<(), std::io::Error>(())
    })();
    written.map_err(because(format!("--out {}", folder.display())))
}

/// The columns of a table without rows.
const FLOW_COLUMNS: &str = "traffic,flow,source,destination,start_s,end_s,bytes,delivered_bytes,fct_s,\
                            goodput_bps,packets,retransmits,timeouts,syn_timeouts,drops,\
                            longest_silence_s,missed_deadline,ideal_s,rto_wait_s,syn_wait_s,\
                            ack_wait_s,window_wait_s,server_wait_s,busy_s,rwnd_limited_s,\
                            sndbuf_limited_s\n";
const QUEUE_COLUMNS: &str = "port,time_s,bytes,packets\n";
const WINDOW_COLUMNS: &str = "traffic,flow,time_s,cwnd_bytes,rwnd_bytes,swnd_bytes,recovering\n";
const JOB_COLUMNS: &str =
    "traffic,job,client,start_s,end_s,time_s,transfers,bytes,missed_deadline\n";

fn csv<T: Serialize>(rows: &[T], columns: &str) -> std::io::Result<Vec<u8>> {
    if rows.is_empty() {
        return Ok(columns.as_bytes().to_vec());
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(std::io::Error::other)?;
    }
    writer.into_inner().map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_has_the_columns_of_a_full_one() {
        let sample = QueueSample {
            port: 0,
            time_s: 0.0,
            bytes: 0,
            packets: 0,
        };
        let flow = FlowRecord {
            traffic: String::new(),
            flow: 0,
            source: String::new(),
            destination: String::new(),
            start_s: 0.0,
            end_s: None,
            bytes: None,
            delivered_bytes: 0,
            fct_s: None,
            goodput_bps: None,
            packets: 0,
            retransmits: 0,
            timeouts: 0,
            syn_timeouts: 0,
            drops: 0,
            longest_silence_s: 0.0,
            missed_deadline: None,
            ideal_s: None,
            rto_wait_s: None,
            syn_wait_s: None,
            ack_wait_s: None,
            window_wait_s: None,
            server_wait_s: None,
            busy_s: None,
            rwnd_limited_s: None,
            sndbuf_limited_s: None,
        };
        let header = |text: Vec<u8>| {
            let text = String::from_utf8(text).expect("text");
            text.lines().next().map(|line| format!("{line}\n"))
        };
        let queues = csv(&[sample], "").expect("CSV");
        assert_eq!(header(queues).as_deref(), Some(QUEUE_COLUMNS));
        let job = JobRow {
            traffic: String::new(),
            job: 0,
            client: None,
            start_s: 0.0,
            end_s: None,
            time_s: None,
            transfers: 0,
            bytes: 0,
            missed_deadline: None,
        };
        let jobs = csv(&[job], "").expect("CSV");
        assert_eq!(header(jobs).as_deref(), Some(JOB_COLUMNS));
        let window = WindowRow {
            traffic: String::new(),
            flow: 0,
            time_s: 0.0,
            cwnd_bytes: 0,
            rwnd_bytes: 0,
            swnd_bytes: 0,
            recovering: false,
        };
        let windows = csv(&[window], "").expect("CSV");
        assert_eq!(header(windows).as_deref(), Some(WINDOW_COLUMNS));
        let flows = csv(&[flow], "").expect("CSV");
        assert_eq!(header(flows).as_deref(), Some(FLOW_COLUMNS));
    }
}
