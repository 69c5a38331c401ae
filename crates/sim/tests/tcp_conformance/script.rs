// SPDX-License-Identifier: Apache-2.0
//! Reading a script.

use penstock_scenario::units::Time;
use penstock_sim::packet::flag;
use penstock_sim::tcp::{
    Algorithm, Config, Counting, Idle, InitialSequence, Nagle, Recovery, RtoFloor,
};

/// A parsed script.
pub struct Script {
    pub cfg: Config,
    pub peer_isn: u32,
    pub steps: Vec<Step>,
}

/// A line that does something.
pub struct Step {
    pub line: usize,
    pub text: String,
    pub at: Time,
    pub action: Action,
}

pub enum Action {
    Call(String, u64),
    Arrive(Segment),
    Expect(Segment),
    Check(Vec<(String, String)>),
}

/// A segment as written; `None` is not specified.
#[derive(Default)]
pub struct Segment {
    pub flags: u16,
    pub seq: u64,
    pub len: u64,
    pub ack: Option<u64>,
    pub window: Option<u16>,
    pub sack: Option<Vec<(u64, u64)>>,
    pub ts: Option<(u32, u32)>,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
    pub ect: Option<bool>,
    pub ce: bool,
    pub size: Option<u32>,
}

type Parsed<T> = Result<T, String>;

const LICENCE: &str = "# SPDX-License-Identifier: Apache-2.0\n";

pub fn parse(text: &str) -> Parsed<Script> {
    let mut script = Script {
        cfg: Config::newreno_ns2(),
        peer_isn: 0,
        steps: Vec::new(),
    };
    let title = text.strip_prefix(LICENCE).unwrap_or_default();
    let sources = ["# RFC", "# Linux", "# ns-2"];
    if !sources.iter().any(|source| title.starts_with(source)) {
        return Err(
            "after the licence the first line must name what is checked: `# RFC ...`".into(),
        );
    }
    let mut now = Time::ZERO;
    for (index, raw) in text.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let outcome = match words.as_slice() {
            [] => Ok(()),
            ["profile", "newreno_ns2"] => {
                script.cfg = Config::newreno_ns2();
                Ok(())
            }
            ["profile", profile @ ("linux" | "linux_3_18")] => {
                script.cfg = match *profile {
                    "linux" => Config::linux(),
                    _ => Config::linux_3_18(),
                };
                script.cfg.initial_sequence = InitialSequence::Fixed(0);
                Ok(())
            }
            ["set", key, "=", value] => set(&mut script.cfg, key, value),
            ["peer_isn", isn] => number(isn).map(|isn: u32| script.peer_isn = isn),
            [at, kind, rest @ ..] => step(now, at, kind, rest).map(|(at, action)| {
                now = at;
                script.steps.push(Step {
                    line: index + 1,
                    text: raw.trim().into(),
                    at,
                    action,
                });
            }),
            _ => Err("a line is `TIME KIND ...`".into()),
        };
        outcome.map_err(|why| format!("line {}: {}\n    {why}", index + 1, raw.trim()))?;
    }
    Ok(script)
}

fn step(now: Time, at: &str, kind: &str, rest: &[&str]) -> Parsed<(Time, Action)> {
    let at = match at.strip_prefix('+') {
        Some(span) => now + time(span)?,
        None => time(at)?,
    };
    if at < now {
        return Err("time runs backwards".into());
    }
    let action = match (kind, rest) {
        ("call", [name]) => Action::Call((*name).into(), 0),
        ("call", [name, count]) => Action::Call((*name).into(), number(count)?),
        ("<", words) => Action::Arrive(segment(words)?),
        (">", words) => Action::Expect(segment(words)?),
        ("?", words) => {
            let text = words.join(" ").replace(" = ", "=");
            let pairs = text.split(' ').map(|pair| {
                let (name, value) = pair.split_once('=').ok_or("a check is NAME = VALUE")?;
                Ok((name.to_owned(), value.to_owned()))
            });
            Action::Check(pairs.collect::<Parsed<_>>()?)
        }
        _ => return Err(format!("unknown kind of line: {kind}")),
    };
    Ok((at, action))
}

pub fn time(text: &str) -> Parsed<Time> {
    let split = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (value, unit) = text.split_at(split);
    let scale: u64 = match unit {
        "us" => 1_000_000,
        "ms" => 1_000_000_000,
        "s" => 1_000_000_000_000,
        "" if value == "0" => 1,
        _ => return Err(format!("not a time: {text}")),
    };
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    let mut ticks = number::<u64>(whole)? * scale;
    let mut unit = scale;
    for digit in part.chars() {
        unit /= 10;
        ticks += unit * digit.to_digit(10).ok_or("not a number")? as u64;
    }
    Ok(Time(ticks))
}

fn number<T: std::str::FromStr>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

fn segment(words: &[&str]) -> Parsed<Segment> {
    let [flags, range, options @ ..] = words else {
        return Err("a segment is FLAGS SEQ:END(LEN) ...".into());
    };
    let mut out = Segment::default();
    for letter in flags.chars() {
        out.flags |= match letter {
            'S' => flag::SYN,
            'F' => flag::FIN,
            'R' => flag::RST,
            'P' => flag::PSH,
            '.' => flag::ACK,
            'E' => flag::ECE,
            'W' => flag::CWR,
            _ => return Err(format!("unknown flag {letter}")),
        };
    }
    let (seq, rest) = range.split_once(':').ok_or("a range is SEQ:END(LEN)")?;
    let (end, len) = rest.split_once('(').ok_or("a range is SEQ:END(LEN)")?;
    out.seq = number(seq)?;
    out.len = number(len.trim_end_matches(')'))?;
    if out.seq + out.len != number::<u64>(end)? {
        return Err("END is not SEQ + LEN".into());
    }
    let mut words = options.iter().copied().peekable();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word {
            "ack" => out.ack = Some(number(value()?)?),
            "win" => out.window = Some(number(value()?)?),
            "mss" => out.mss = Some(number(value()?)?),
            "ws" => out.scale = Some(number(value()?)?),
            "size" => out.size = Some(number(value()?)?),
            "sackok" => out.sack_permitted = true,
            "ect" => out.ect = Some(true),
            "noect" => out.ect = Some(false),
            "ce" => (out.ect, out.ce) = (Some(true), true),
            "ts" => {
                let val = number(value()?)?;
                if words.next() != Some("ecr") {
                    return Err("ts VAL ecr ECR".into());
                }
                out.ts = Some((val, number(words.next().ok_or("ecr needs a value")?)?));
            }
            "sack" => {
                let mut blocks = Vec::new();
                while let Some(block) = words.next_if(|w| *w == "none" || w.contains('-')) {
                    if let Some((left, right)) = block.split_once('-') {
                        blocks.push((number(left)?, number(right)?));
                    }
                }
                out.sack = Some(blocks);
            }
            _ => return Err(format!("unknown word {word}")),
        }
    }
    Ok(out)
}

fn set(cfg: &mut Config, key: &str, value: &str) -> Parsed<()> {
    let flag = || match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("on or off, not {value}")),
    };
    match key {
        "isn" => cfg.initial_sequence = InitialSequence::Fixed(number(value)?),
        "mss" => cfg.mss = number(value)?,
        "timestamps" => cfg.timestamps = flag()?,
        "sack" => cfg.sack = flag()?,
        "ecn" => cfg.ecn = flag()?,
        "window_scale" => {
            cfg.window_scale = if value == "off" {
                None
            } else {
                Some(number(value)?)
            }
        }
        "congestion" => {
            cfg.congestion = match value {
                "newreno" => Algorithm::NewReno,
                "cubic" => Algorithm::Cubic { hystart: false },
                "cubic+hystart" => Algorithm::Cubic { hystart: true },
                "dctcp" => Algorithm::Dctcp,
                "bbr" => Algorithm::Bbr,
                _ => return Err(format!("unknown algorithm {value}")),
            }
        }
        "recovery" => {
            cfg.recovery = match value {
                "reno" => Recovery::Reno,
                "newreno" => Recovery::NewReno,
                "sack" => Recovery::Sack,
                "rack" => Recovery::Rack,
                _ => return Err(format!("unknown recovery {value}")),
            }
        }
        "counting" => {
            cfg.counting = match value {
                "acks" => Counting::Acks,
                "delivered" => Counting::Delivered,
                _ => Counting::Bytes(number(value)?),
            }
        }
        "rto_floor" => {
            cfg.rto_floor = match value {
                "timeout" => RtoFloor::Timeout,
                "variance" => RtoFloor::Variance,
                _ => return Err(format!("timeout or variance, not {value}")),
            }
        }
        "idle" => {
            cfg.idle = match value {
                "keep" => Idle::Keep,
                "decay" => Idle::Decay,
                _ => return Err(format!("keep or decay, not {value}")),
            }
        }
        "initial_window" => cfg.initial_window = number(value)?,
        "initial_ssthresh" => cfg.initial_ssthresh = number(value)?,
        "max_send_window" => cfg.max_send_window = number(value)?,
        "validate_cwnd" => cfg.validate_cwnd = flag()?,
        "ns2_windows" => cfg.ns2_windows = flag()?,
        "limited_transmit" => cfg.limited_transmit = flag()?,
        "impatient" => cfg.impatient = flag()?,
        "ack_heuristic" => cfg.ack_heuristic = flag()?,
        "dupack_any_window" => cfg.dupack_any_window = flag()?,
        "jiffy" => cfg.jiffy = time(value)?,
        "coarse_timers" => cfg.coarse_timers = flag()?,
        "reorder_delay" => cfg.reorder_delay = time(value)?,
        "repeats_only_open" => cfg.repeats_only_open = flag()?,
        "prr" => cfg.prr = flag()?,
        "tlp" => cfg.tlp = flag()?,
        "early_retransmit" => cfg.early_retransmit = flag()?,
        "nagle" => {
            cfg.nagle = match value {
                "off" => Nagle::Off,
                "on" => Nagle::On,
                "minshall" => Nagle::Minshall,
                _ => return Err(format!("off, on or minshall, not {value}")),
            }
        }
        "half_window_mss" => cfg.half_window_mss = flag()?,
        "tick" => cfg.tick = time(value)?,
        "initial_rto" => cfg.initial_rto = time(value)?,
        "min_rto" => cfg.min_rto = time(value)?,
        "max_rto" => cfg.max_rto = time(value)?,
        "delayed_ack" => cfg.delayed_ack = time(value)?,
        "time_wait" => cfg.time_wait = time(value)?,
        "tlp_delay" => cfg.tlp_delay = time(value)?,
        "tlp_min" => cfg.tlp_min = time(value)?,
        "tlp_single_delay" => cfg.tlp_single_delay = time(value)?,
        "ack_every" => cfg.ack_every = number(value)?,
        "quick_acks" => cfg.quick_acks = number(value)?,
        "syn_linear_timeouts" => cfg.syn_linear_timeouts = number(value)?,
        "syn_retries" => cfg.syn_retries = number(value)?,
        "retries" => cfg.retries = number(value)?,
        "syn_losses_forgiven" => cfg.syn_losses_forgiven = number(value)?,
        "receive_buffer" => {
            cfg.receive_buffer = number(value)?;
            cfg.initial_receive_window = cfg.receive_buffer;
        }
        "initial_receive_window" => cfg.initial_receive_window = number(value)?,
        _ => return Err(format!("unknown setting {key}")),
    }
    Ok(())
}
