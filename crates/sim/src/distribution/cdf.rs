// SPDX-License-Identifier: Apache-2.0
//! Flow sizes as measured: a cumulative distribution, linear between its points.

use super::workloads;
use std::fmt;
use std::path::Path;

/// Points (bytes, probability of a flow being no larger), from probability 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    points: Vec<(f64, f64)>,
}

/// What is wrong with a file of a distribution, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CdfError {
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1; `None` where the whole file is meant.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for CdfError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for CdfError {}

impl Cdf {
    /// Flows of a web-search cluster (Alizadeh et al., "Data center TCP", SIGCOMM 2010); mean 1.7 MB.
    pub fn web_search() -> Cdf {
        Cdf {
            points: workloads::WEB_SEARCH.to_vec(),
        }
    }

    /// The published distribution of this name.
    pub fn named(name: &str) -> Option<Cdf> {
        let mut all = workloads::WORKLOADS.iter();
        let (_, points) = all.find(|(known, _)| *known == name)?;
        Some(Cdf {
            points: points.to_vec(),
        })
    }

    /// The same in another unit, of which `factor` make one.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Cdf {
        for (value, _) in &mut self.points {
            *value *= factor;
        }
        self
    }

    /// Reads a file as [`Cdf::parse`] does.
    pub fn load(path: &Path) -> Result<Cdf, CdfError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Cdf::parse(&file, &text),
            Err(error) => {
                let message =
                    format!("cannot read it ({error}); check the path and that it is UTF-8 text");
                Err(CdfError {
                    file,
                    line: None,
                    message,
                })
            }
        }
    }

    /// One point a line, "bytes cumulative-probability", from probability 0 to 1, neither ever
    /// falling; `#` begins a comment. Equal bytes on two lines make that size as probable as the
    /// probability grows. `file` is what errors call the text.
    pub fn parse(file: &str, text: &str) -> Result<Cdf, CdfError> {
        let fail = |line, message| CdfError {
            file: file.to_owned(),
            line,
            message,
        };
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_line = 0;
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            last_line = index + 1;
            let point = parse_point(content)
                .and_then(|point| check_order(points.last().copied(), point))
                .map_err(|message| fail(Some(last_line), message))?;
            points.push(point);
        }
        match points.last() {
            None => Err(fail(
                None,
                "holds no points; write one per line, as in \"1500 0.25\"".to_owned(),
            )),
            Some(&(0.0, 1.0)) => Err(fail(
                Some(last_line),
                "the largest flow has 0 bytes; write sizes in bytes".to_owned(),
            )),
            Some(&(_, 1.0)) => Ok(Cdf { points }),
            Some(&(_, p)) => Err(fail(
                Some(last_line),
                format!(
                    "the last probability is {p}; it must be 1: add the size of the largest flow with 1"
                ),
            )),
        }
    }

    /// The points: bytes, cumulative probability.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The size below which a flow is with probability `p`, for 0 <= `p` <= 1.
    pub fn quantile(&self, p: f64) -> f64 {
        let upper = self
            .points
            .partition_point(|&(_, probability)| probability <= p);
        let upper = upper.clamp(1, self.points.len() - 1);
        let ((x0, p0), (x1, p1)) = (self.points[upper - 1], self.points[upper]);
        // Equal probabilities end the file only when p is 1: the larger size is meant.
        if p1 > p0 {
            x0 + (p - p0) / (p1 - p0) * (x1 - x0)
        } else {
            x1
        }
    }

    /// The mean, exactly: every piece is uniform.
    pub fn mean(&self) -> f64 {
        let piece = |w: &[(f64, f64)]| (w[1].1 - w[0].1) * (w[0].0 + w[1].0) / 2.0;
        self.points.windows(2).map(piece).sum()
    }
}

fn parse_point(content: &str) -> Result<(f64, f64), String> {
    let fields: Vec<&str> = content.split_whitespace().collect();
    let &[bytes, probability] = &fields[..] else {
        return Err(format!(
            "has {} fields; write two: bytes and cumulative probability, as in \"1500 0.25\"",
            fields.len()
        ));
    };
    let number = |text: &str, what: &str| {
        let value = text
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite() && *value >= 0.0);
        value.ok_or_else(|| {
            format!("{what} \"{text}\" is not a number of 0 or more; write it as 1500 or 0.25")
        })
    };
    let point = (number(bytes, "size")?, number(probability, "probability")?);
    if point.1 > 1.0 {
        return Err(format!(
            "probability {probability} is above 1; divide percentages by 100"
        ));
    }
    Ok(point)
}

fn check_order(before: Option<(f64, f64)>, point: (f64, f64)) -> Result<(f64, f64), String> {
    let Some((bytes, probability)) = before else {
        return match point.1 {
            0.0 => Ok(point),
            p => Err(format!(
                "the first probability is {p}; it must be 0: begin with the smallest size and 0"
            )),
        };
    };
    if point.0 < bytes {
        return Err(format!(
            "size {} is below {bytes} before it; sort the lines by size",
            point.0
        ));
    }
    if point.1 < probability {
        return Err(format!(
            "probability {} is below {probability} before it; it must be cumulative, never falling",
            point.1
        ));
    }
    if point == (bytes, probability) {
        return Err("repeats the point before it; remove one of them".to_owned());
    }
    Ok(point)
}
