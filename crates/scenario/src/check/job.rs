// SPDX-License-Identifier: Apache-2.0
//! Jobs that cannot be run.

use std::collections::HashMap;

use super::Checker;
use super::traffic::MOST_FLOWS;
use crate::job::CLIENT;
use crate::{Fabric, Job, Pattern, Stage};

impl Checker<'_> {
    pub(super) fn job(&mut self, job: &Job, fabric: &Fabric, key: &str) {
        let at = |name: &str| format!("{key}.{name}");
        self.drawn(Some(&job.think), true, &at("think"));
        self.drawn(job.every.as_ref(), false, &at("every"));
        self.require(
            job.every.is_none() || job.think.is_zero(),
            &at("think"),
            || "contradicts every; allowed: one of them".to_owned(),
        );
        self.positive(job.deadline, &at("deadline"));
        self.require(!job.stages.is_empty(), &at("stages"), || {
            "is empty; allowed: at least one stage".to_owned()
        });
        let Some((rows, sets)) = self.sets(job, fabric, key) else {
            return;
        };
        let mut each: u64 = 0;
        for (number, stage) in job.stages.iter().enumerate() {
            let flows = self.stage(stage, fabric, &sets, &format!("{key}.stages[{number}]"));
            each = each.saturating_add(flows);
        }
        let all = each
            .saturating_mul(u64::from(job.jobs))
            .saturating_mul(rows);
        self.require(all <= MOST_FLOWS, &at("jobs"), || {
            format!("make {all} transfers; allowed: at most {MOST_FLOWS}")
        });
    }

    /// The rows of jobs, and the sets of hosts that stages may name, as they are for the first client.
    fn sets(
        &mut self,
        job: &Job,
        fabric: &Fabric,
        key: &str,
    ) -> Option<(u64, HashMap<String, Vec<usize>>)> {
        let before = self.problems.len();
        let mut sets = HashMap::new();
        let mut rows = 1;
        let mut client = None;
        if let Some(clients) = &job.clients {
            match clients.resolve(fabric) {
                Ok(hosts) => {
                    rows = hosts.len() as u64;
                    client = hosts.first().copied();
                    sets.insert(CLIENT.to_owned(), hosts[..1].to_vec());
                }
                Err(what) => self.refuse(&format!("{key}.clients"), what),
            }
        }
        for (name, pick) in &job.pick {
            let at = format!("{key}.pick.{name}");
            self.name(name, &at);
            let is_free = name != CLIENT && !fabric.groups().contains_key(name);
            self.require(is_free, &at, || {
                format!("\"{name}\" names hosts already; allowed: another name")
            });
            match pick.of.resolve(fabric) {
                Ok(hosts) => {
                    let others = hosts.iter().filter(|host| Some(**host) != client);
                    let others: Vec<usize> = others.copied().collect();
                    let count = pick.count as usize;
                    self.require(count <= others.len(), &format!("{at}.count"), || {
                        format!("is {count}; allowed: 1 to {}", others.len())
                    });
                    sets.insert(name.clone(), others.into_iter().take(count).collect());
                }
                Err(what) => self.refuse(&format!("{at}.of"), what),
            }
        }
        (self.problems.len() == before).then_some((rows, sets))
    }

    /// Checks a stage; the number of its transfers.
    fn stage(
        &mut self,
        stage: &Stage,
        fabric: &Fabric,
        sets: &HashMap<String, Vec<usize>>,
        key: &str,
    ) -> u64 {
        let at = |name: &str| format!("{key}.{name}");
        let mut hosts = |selector, name: &str| {
            Job::hosts(selector, fabric, sets)
                .map_err(|what| self.refuse(&at(name), what))
                .unwrap_or_default()
        };
        let (from, to) = (hosts(&stage.from, "from"), hosts(&stage.to, "to"));
        self.drawn(stage.size.as_ref(), false, &at("size"));
        self.drawn(Some(&stage.request), false, &at("request"));
        self.drawn(Some(&stage.think), true, &at("think"));
        self.server_think(&stage.server_think, stage.mode, key);
        if from.is_empty() || to.is_empty() {
            return 0;
        }
        if stage.pairs.is_among() {
            self.require(from == to && from.len() > 1, &at("to"), || {
                "is not the list of hosts in from; these pairs are among two hosts or more of one \
                 list; allowed: the same in both"
                    .to_owned()
            });
            self.require(stage.flows.is_none(), &at("flows"), || {
                "has no meaning with these pairs; remove it".to_owned()
            });
            let is_power = stage.pairs != Pattern::Exchange || from.len().is_power_of_two();
            self.require(is_power, &at("pairs"), || {
                format!(
                    "\"exchange\" is among 2, 4, 8, ... hosts; here are {}",
                    from.len()
                )
            });
        }
        let flows = match (stage.flows, stage.pairs) {
            (Some(flows), _) => u64::from(flows),
            (None, Pattern::All) => from.len() as u64 * to.len() as u64,
            (None, _) => from.len().max(to.len()) as u64,
        };
        let total = flows.saturating_mul(stage.steps(from.len()).into());
        if total > MOST_FLOWS {
            self.refuse(
                &at("from"),
                format!("makes {total} transfers; allowed: at most {MOST_FLOWS}"),
            );
            return 0;
        }
        let is_one_host = from.iter().chain(&to).all(|host| *host == from[0]);
        self.require(!is_one_host, &at("to"), || {
            let host = fabric.host_name(from[0]);
            format!("{host} would send to itself; allowed: other hosts than in from")
        });
        match (&stage.size, stage.block) {
            (None, None) => self.refuse(&at("size"), "is missing; allowed: size or block"),
            (Some(_), Some(_)) => {
                self.refuse(&at("block"), "contradicts size; allowed: one of them");
            }
            (None, Some(block)) => self.require(block.0 >= flows, &at("block"), || {
                format!("{block} is less than a byte for each of {flows} transfers")
            }),
            (Some(_), None) => {}
        }
        let enough = u64::from(stage.enough.unwrap_or(1));
        self.require(enough <= flows, &at("enough"), || {
            format!("is {enough}, but a step has {flows} transfers")
        });
        total
    }
}
