//! Parameters with a form of their own.

use super::parameter::memory;
use kvlab_protocol::resp::number::parse_i64;

/// `save`: pairs of seconds and changes; empty is never.
pub(super) fn save(new: &str, _old: &str) -> Result<String, String> {
    let words: Vec<_> = new.split_ascii_whitespace().collect();
    let legal = words.len().is_multiple_of(2)
        && words.iter().enumerate().all(|(index, word)| {
            let least = i64::from(index % 2 == 0);
            parse_i64(word.as_bytes()).is_some_and(|number| number >= least)
        });
    if legal {
        return Ok(words.join(" "));
    }
    Err("Invalid save parameters".to_owned())
}

/// `client-output-buffer-limit`: for some classes of clients a hard limit, a soft one and its
/// seconds; classes that are not named keep theirs.
pub(super) fn output_limits(new: &str, old: &str) -> Result<String, String> {
    let words: Vec<_> = new.split_ascii_whitespace().collect();
    if !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut limits: Vec<String> = old.split_ascii_whitespace().map(str::to_owned).collect();
    for group in words.chunks(4) {
        let [class, hard, soft, seconds] = group else {
            continue;
        };
        let class = match class.to_ascii_lowercase().as_str() {
            "normal" => "normal",
            "slave" | "replica" => "slave",
            "pubsub" => "pubsub",
            _ => {
                return Err(
                    "Invalid client class specified in buffer limit configuration.".to_owned(),
                );
            }
        };
        let seconds = parse_i64(seconds.as_bytes()).filter(|seconds| *seconds >= 0);
        let (Some(hard), Some(soft), Some(seconds)) = (memory(hard), memory(soft), seconds) else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
                    .to_owned(),
            );
        };
        if let Some(at) = limits.iter().position(|word| word == class) {
            let limit = [hard.to_string(), soft.to_string(), seconds.to_string()];
            for (place, word) in limits.iter_mut().skip(at + 1).zip(limit) {
                *place = word;
            }
        }
    }
    Ok(limits.join(" "))
}

/// Hard limit, soft limit and its seconds of ordinary clients, from such a value.
pub(super) fn normal_output_limit(value: &str) -> [u64; 3] {
    let mut words = value.split_ascii_whitespace();
    let found = words.any(|word| word == "normal");
    let mut number = || {
        let word = words.next().filter(|_| found)?;
        word.parse().ok()
    };
    [(); 3].map(|()| number().unwrap_or(0))
}

/// `notify-keyspace-events`: letters for classes of events, given back in one order.
pub(super) fn keyspace_events(new: &str, _old: &str) -> Result<String, String> {
    if new
        .chars()
        .any(|letter| letter != 'A' && !EVENTS.contains(letter))
    {
        return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned());
    }
    let has = |letter: char| new.contains(letter) || (new.contains('A') && ALL.contains(letter));
    let mut text = String::new();
    if ALL.chars().all(has) {
        text.push('A');
        text.extend("KEm".chars().filter(|letter| has(*letter)));
    } else {
        text.extend(EVENTS.chars().filter(|letter| has(*letter)));
    }
    Ok(text)
}

/// All letters, in the order a server prints them.
const EVENTS: &str = "g$lshzxetdnKEm";
/// What `A` stands for.
const ALL: &str = "g$lshzxetd";

/// `latency-tracking-info-percentiles`: numbers from 0 to 100.
pub(super) fn percentiles(new: &str, _old: &str) -> Result<String, String> {
    for word in new.split_ascii_whitespace() {
        let number: f64 = word
            .parse()
            .map_err(|_| "Invalid latency-tracking-info-percentiles parameters")?;
        if !(0.0..=100.0).contains(&number) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .to_owned(),
            );
        }
    }
    Ok(new.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// `oom-score-adj-values`: three numbers.
pub(super) fn oom_scores(new: &str, _old: &str) -> Result<String, String> {
    let words: Vec<_> = new.split_ascii_whitespace().collect();
    if words.len() != 3 {
        return Err("wrong number of arguments".to_owned());
    }
    let legal = words.iter().all(|word| {
        parse_i64(word.as_bytes()).is_some_and(|score| (-2000..=2000).contains(&score))
    });
    if legal {
        return Ok(words.join(" "));
    }
    Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".to_owned())
}

/// `hz`: too small and too large are brought into range.
pub(super) fn hertz(new: &str, _old: &str) -> Result<String, String> {
    let number = parse_i64(new.as_bytes()).ok_or("argument couldn't be parsed into an integer")?;
    if !(0..=i64::from(i32::MAX)).contains(&number) {
        return Err(format!(
            "argument must be between 0 and {} inclusive",
            i32::MAX
        ));
    }
    Ok(number.clamp(1, 500).to_string())
}

/// `activedefrag`: there is nothing to defragment.
pub(super) fn defragmentation(new: &str, _old: &str) -> Result<String, String> {
    match new.to_ascii_lowercase().as_str() {
        "no" => Ok("no".to_owned()),
        "yes" => Err(
            "Active defragmentation cannot be enabled: it requires a Redis server compiled with a \
             modified Jemalloc like the one shipped by default with the Redis source distribution"
                .to_owned(),
        ),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

/// `bind`: this server goes on listening where it started.
pub(super) fn address(new: &str, old: &str) -> Result<String, String> {
    if new == old {
        return Ok(new.to_owned());
    }
    Err("Failed to bind to specified addresses.".to_owned())
}

/// `port`: this server goes on listening where it started.
pub(super) fn port(new: &str, old: &str) -> Result<String, String> {
    if new == old {
        return Ok(new.to_owned());
    }
    Err("Unable to listen on this port. Check server logs.".to_owned())
}
