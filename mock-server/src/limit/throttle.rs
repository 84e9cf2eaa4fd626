//! Throttles: operations, bytes of requests and bytes of replies per window, as token buckets.
//!
//! ```text
//! throttle = quantity "=" amount "/" window { "," option } [ ",text=" rest ]
//! quantity = "ops" | "in" | "out"
//! window   = "s" | "m" | "h" | "d" | number "d" | duration
//! option   = "burst=" amount | "per=" ("server" | "client") | "of=" selector
//!          | "then=" ("delay" | "error" | "drop")
//! ```
//!
//! The bucket holds `burst`, by default the amount of one window, and is refilled with the amount per
//! window, continuously: `ops=500000/30d,then=error` is a quota for a month. One that is `per=client`
//! has a bucket for each client address, whatever the number of its connections. Without `of` a
//! throttle concerns reads and writes, as a latency rule does.
//!
//! A request asks for its tokens at the moment it would start otherwise, which is not before the start
//! of the one ahead of it on its connection. All throttles that select it are asked, in the order in
//! which they were given:
//!
//! * Those that refuse come first. If one of them has too little, no token is taken anywhere, and the
//!   request is answered with an error or, for `drop`, never.
//! * Those that delay give it a turn: the moment at which its tokens have come, behind all who asked
//!   before. The request starts at the latest of its turns.
//! * `ops` takes one token, `in` the bytes of the request, and `out` those of its reply, which are
//!   known only when it was executed: they are taken at its start, and a delaying throttle gives the
//!   reply its turn. An `out` that refuses does so while it owes tokens.
//!
//! More bytes than a bucket holds have come when that many were added; a throttle on `in` that
//! refuses lets such a request never pass.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use kvlab_timing::duration::{self, Human};
use kvlab_timing::{Rate, Stamp, TokenBucket};

use super::{ByteSize, LimitError};
use crate::exchange::Exchange;
use crate::latency::Selector;

/// A limit on how much passes in a time. See the module documentation.
///
/// ```
/// use kvlab_mock_server::limit::Throttle;
///
/// let throttle: Throttle = "ops=1000/s,burst=100,then=error,text=ERR too many, sorry".parse()?;
/// assert_eq!((throttle.amount, throttle.capacity()), (1000, 100));
/// assert_eq!(throttle.text.as_deref(), Some("ERR too many, sorry"));
/// # Ok::<(), kvlab_mock_server::limit::LimitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throttle {
    /// What is counted.
    pub quantity: Quantity,
    /// How much of it passes in a window; at least 1.
    pub amount: u64,
    /// The window.
    pub window: Duration,
    /// How much passes at once, where that is not the amount of a window.
    pub burst: Option<u64>,
    /// Whose requests are counted together.
    pub per: Scope,
    /// Which requests are counted; key patterns are refused.
    pub of: Selector,
    /// What becomes of a request beyond it.
    pub then: AtLimit,
    /// What a RESP client is told that is refused, without the leading `-`.
    pub text: Option<String>,
    /// Amount by window.
    refill: Rate,
}

/// What a throttle counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Requests.
    Operations,
    /// Bytes of requests.
    BytesIn,
    /// Bytes of replies.
    BytesOut,
}

/// Whose requests share a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All of the server's.
    #[default]
    Server,
    /// Those that come from one address.
    Client,
}

/// What becomes of a request beyond a throttle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtLimit {
    /// It waits for its turn.
    #[default]
    Delay,
    /// It is answered with an error and not executed.
    Error,
    /// It is never answered, nor is any that comes behind it on its connection, which stays open.
    Drop,
}

impl Throttle {
    /// A server takes no more throttles: each request may ask all of them.
    pub const MAX: usize = 64;
    /// What a RESP client is told that is refused where nothing else is said.
    pub const TEXT: &'static str = "ERR max requests limit exceeded";

    /// A throttle on reads and writes of all clients together, which delays.
    ///
    /// # Errors
    /// When amount or window is 0, or the window is longer than [`LONGEST_WINDOW`].
    pub fn new(quantity: Quantity, amount: u64, window: Duration) -> Result<Self, LimitError> {
        let refill = Rate::per_period(amount, window)
            .ok()
            .filter(|_| window <= LONGEST_WINDOW);
        let Some(refill) = refill else {
            let found = format!("{amount}/{}", Window(window));
            return Err(LimitError::new("a throttle", &found, RATE));
        };
        Ok(Self {
            quantity,
            amount,
            window,
            burst: None,
            per: Scope::Server,
            of: Selector::DATA,
            then: AtLimit::Delay,
            text: None,
            refill,
        })
    }

    /// What passes at once.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.burst.unwrap_or(self.amount)
    }

    /// What comes back per second.
    #[must_use]
    pub fn refill(&self) -> Rate {
        self.refill
    }

    fn bucket(&self, now: Stamp) -> TokenBucket {
        TokenBucket::new(now, self.capacity(), self.refill)
    }
}

/// The longest window: a leap year.
pub const LONGEST_WINDOW: Duration = Duration::from_secs(366 * DAY_S);

const DAY_S: u64 = 24 * 3600;
const RATE: &str = "an amount above 0 and a window of at most 366 days, as in ops=1000/s, in=10MB/s or ops=500/30d";
const FORM: &str = "ops=N/WINDOW, in=SIZE/WINDOW or out=SIZE/WINDOW, then burst=, per=server|client, \
                    of=SELECTOR, then=delay|error|drop, and text= at the end, each at most once";
const SELECTOR: &str = "a class or command without a key pattern, with or without its protocol, as in write or redis.set";

impl FromStr for Throttle {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let wrong = |found: &str, expected| LimitError::new("a throttle", found, expected);
        let (head, own_text) = match text.split_once(",text=") {
            Some((head, own_text)) => (head, Some(own_text.to_owned())),
            None => (text, None),
        };
        let mut options = head.split(',').map(str::trim);
        let first = options.next().unwrap_or_default();
        let (quantity, rate) = match first.split_once('=') {
            Some(("ops", rate)) => (Quantity::Operations, rate),
            Some(("in", rate)) => (Quantity::BytesIn, rate),
            Some(("out", rate)) => (Quantity::BytesOut, rate),
            _ => return Err(wrong(first, FORM)),
        };
        let (amount, window) = rate.split_once('/').ok_or_else(|| wrong(rate, RATE))?;
        let amount = quantity.read(amount).ok_or_else(|| wrong(rate, RATE))?;
        let window = Window::read(window).ok_or_else(|| wrong(rate, RATE))?;
        let mut throttle = Self::new(quantity, amount, window)?;
        throttle.text = own_text;
        let mut seen = Vec::new();
        for option in options {
            let (name, value) = option.split_once('=').ok_or_else(|| wrong(option, FORM))?;
            if seen.contains(&name) {
                return Err(wrong(option, FORM));
            }
            seen.push(name);
            match (name, value) {
                ("burst", burst) => {
                    let burst = quantity.read(burst).filter(|burst| *burst > 0);
                    throttle.burst = Some(burst.ok_or_else(|| wrong(option, "a burst above 0"))?);
                }
                ("per", "server") => throttle.per = Scope::Server,
                ("per", "client") => throttle.per = Scope::Client,
                ("then", "delay") => throttle.then = AtLimit::Delay,
                ("then", "error") => throttle.then = AtLimit::Error,
                ("then", "drop") => throttle.then = AtLimit::Drop,
                ("of", selector) => {
                    throttle.of = Selector::parse(selector, selector.len())
                        .ok()
                        .filter(|selector| selector.key.is_none())
                        .ok_or_else(|| wrong(option, SELECTOR))?;
                }
                _ => return Err(wrong(option, FORM)),
            }
        }
        Ok(throttle)
    }
}

impl TryFrom<&str> for Throttle {
    type Error = LimitError;

    fn try_from(text: &str) -> Result<Self, LimitError> {
        text.parse()
    }
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.quantity {
            Quantity::Operations => "ops",
            Quantity::BytesIn => "in",
            Quantity::BytesOut => "out",
        };
        let amount = |amount| self.quantity.print(amount);
        write!(f, "{name}={}/{}", amount(self.amount), Window(self.window))?;
        if let Some(burst) = self.burst {
            write!(f, ",burst={}", amount(burst))?;
        }
        if self.per == Scope::Client {
            f.write_str(",per=client")?;
        }
        if self.of != Selector::DATA {
            write!(f, ",of={}", self.of)?;
        }
        match self.then {
            AtLimit::Delay => {}
            AtLimit::Error => f.write_str(",then=error")?,
            AtLimit::Drop => f.write_str(",then=drop")?,
        }
        match &self.text {
            Some(text) => write!(f, ",text={text}"),
            None => Ok(()),
        }
    }
}

impl Quantity {
    fn read(self, text: &str) -> Option<u64> {
        match self {
            Self::Operations => {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|_| digits)
            }
            Self::BytesIn | Self::BytesOut => text.parse().ok().map(|ByteSize(bytes)| bytes),
        }
    }

    fn print(self, amount: u64) -> String {
        match self {
            Self::Operations => amount.to_string(),
            Self::BytesIn | Self::BytesOut => ByteSize(amount).to_string(),
        }
    }
}

/// A window as people write it: `s`, `500ms`, `30d`.
struct Window(Duration);

impl Window {
    fn read(text: &str) -> Option<Duration> {
        let one = |unit: char| text.chars().eq([unit]);
        let whole = if ['s', 'm', 'h', 'd'].into_iter().any(one) {
            format!("1{text}")
        } else {
            text.to_owned()
        };
        match whole.strip_suffix('d') {
            Some(days) => {
                let digits = days.bytes().all(|byte| byte.is_ascii_digit());
                let days: u64 = days.parse().ok().filter(|_| digits)?;
                days.checked_mul(DAY_S).map(Duration::from_secs)
            }
            None => duration::parse(&whole).ok(),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let whole_days = self.0.subsec_nanos() == 0 && seconds.is_multiple_of(DAY_S);
        let text = match seconds / DAY_S {
            days if whole_days && days > 0 => format!("{days}d"),
            _ => Human(self.0).to_string(),
        };
        // `1s` reads as `s`.
        let bare = text.strip_prefix('1').filter(|unit| unit.len() == 1);
        f.write_str(bare.unwrap_or(&text))
    }
}

/// A request that asks for its tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) exchange: Exchange<'a>,
    /// Bytes of the request.
    pub(crate) bytes: u64,
    /// Where it comes from.
    pub(crate) client: IpAddr,
}

/// What a request was told that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Its place in the order of those who asked and of those whose replies were counted, from 0.
    pub(crate) place: u64,
    /// When it may start.
    pub(crate) turn: Stamp,
    /// Which throttle refuses it, by its number, if one does.
    pub(crate) refused_by: Option<usize>,
}

/// The throttles of a running server.
#[derive(Debug)]
pub(crate) struct Throttles {
    meters: Vec<Meter>,
    /// Whether any counts replies.
    counts_replies: bool,
    places: u64,
}

#[derive(Debug)]
struct Meter {
    throttle: Throttle,
    whole: TokenBucket,
    clients: BTreeMap<IpAddr, TokenBucket>,
    /// The latest moment at which anybody asked: on several workers one that lies before it may come
    /// after it, and counts as that one.
    latest: Stamp,
    /// How many clients may have a bucket before those are looked for that need none.
    clients_most: usize,
}

/// Buckets of clients that are kept whether they are full or not.
const CLIENTS_KEPT: usize = 4096;

impl Throttles {
    pub(crate) fn new(throttles: &[Throttle], started: Stamp) -> Self {
        let meter = |throttle: &Throttle| Meter {
            whole: throttle.bucket(started),
            throttle: throttle.clone(),
            clients: BTreeMap::new(),
            latest: started,
            clients_most: CLIENTS_KEPT,
        };
        Self {
            meters: throttles.iter().map(meter).collect(),
            counts_replies: throttles
                .iter()
                .any(|throttle| throttle.quantity == Quantity::BytesOut),
            places: 0,
        }
    }

    /// What a request is told that would start at `asked`; `None` if no throttle selects it.
    pub(crate) fn ask(&mut self, asked: Stamp, request: &Asking<'_>) -> Option<Answer> {
        let selects = |meter: &Meter| meter.throttle.of.selects(&request.exchange);
        if !self.meters.iter().any(selects) {
            return None;
        }
        let place = self.next_place();
        let mut turn = asked;
        for (number, meter) in self.meters.iter_mut().enumerate() {
            if selects(meter) && meter.refuses(asked, request) {
                return Some(Answer {
                    place,
                    turn,
                    refused_by: Some(number),
                });
            }
        }
        for meter in self.meters.iter_mut().filter(|meter| selects(meter)) {
            let own = meter.take(asked, request);
            if meter.throttle.then == AtLimit::Delay {
                turn = turn.max(own);
            }
        }
        Some(Answer {
            place,
            turn,
            refused_by: None,
        })
    }

    /// Takes the tokens of a reply of `bytes` to a request that started at `start`: when it may be
    /// written. `None` if no throttle counts it.
    pub(crate) fn reply(
        &mut self,
        start: Stamp,
        request: &Asking<'_>,
        bytes: u64,
    ) -> Option<(Stamp, u64)> {
        if !self.counts_replies {
            return None;
        }
        let mut turn = None;
        for meter in &mut self.meters {
            let throttle = &meter.throttle;
            if throttle.quantity == Quantity::BytesOut && throttle.of.selects(&request.exchange) {
                let delays = throttle.then == AtLimit::Delay;
                let now = meter.moment(start);
                let own = meter
                    .bucket(now, request.client)
                    .reserve_in_full(now, bytes);
                let own = if own > now { own } else { start };
                let so_far = turn.unwrap_or(start);
                turn = Some(if delays { own.max(so_far) } else { so_far });
            }
        }
        turn.map(|turn| (turn, self.next_place()))
    }

    /// The throttle of a number.
    pub(crate) fn rule(&self, number: usize) -> Option<&Throttle> {
        self.meters.get(number).map(|meter| &meter.throttle)
    }

    fn next_place(&mut self) -> u64 {
        self.places += 1;
        self.places - 1
    }
}

impl Meter {
    /// What a request takes at its start.
    fn tokens(&self, request: &Asking<'_>) -> u64 {
        match self.throttle.quantity {
            Quantity::Operations => 1,
            Quantity::BytesIn => request.bytes,
            Quantity::BytesOut => 0,
        }
    }

    fn refuses(&mut self, asked: Stamp, request: &Asking<'_>) -> bool {
        if self.throttle.then == AtLimit::Delay {
            return false;
        }
        // Of a reply nothing is known yet: it may come while no token is owed.
        let needed = match self.throttle.quantity {
            Quantity::BytesOut => 1,
            _ => self.tokens(request),
        };
        let now = self.moment(asked);
        let bucket = self.bucket(now, request.client);
        bucket.next_available(now, needed) > now
    }

    /// A moment that lies before none that was asked at.
    fn moment(&mut self, asked: Stamp) -> Stamp {
        self.latest = self.latest.max(asked);
        self.latest
    }

    fn take(&mut self, asked: Stamp, request: &Asking<'_>) -> Stamp {
        let tokens = self.tokens(request);
        if tokens == 0 {
            return asked;
        }
        let now = self.moment(asked);
        let turn = self
            .bucket(now, request.client)
            .reserve_in_full(now, tokens);
        if turn > now { turn } else { asked }
    }

    fn bucket(&mut self, now: Stamp, client: IpAddr) -> &mut TokenBucket {
        if self.throttle.per == Scope::Server {
            return &mut self.whole;
        }
        if self.clients.len() >= self.clients_most && !self.clients.contains_key(&client) {
            // A bucket that is full again is as good as a new one.
            let capacity = self.throttle.capacity();
            self.clients
                .retain(|_, bucket| bucket.available(now) < capacity);
            self.clients_most = CLIENTS_KEPT.max(2 * self.clients.len());
        }
        let throttle = &self.throttle;
        self.clients
            .entry(client)
            .or_insert_with(|| throttle.bucket(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Class, Protocol};

    #[test]
    fn throttles_are_read_and_print_as_they_are_read() {
        for (text, printed) in [
            ("ops=1000/s", "ops=1000/s"),
            ("ops=500000/30d,then=error", "ops=500000/30d,then=error"),
            ("ops=10000/1d, per=client", "ops=10000/d,per=client"),
            ("in=10MB/1s,burst=1KiB", "in=10MB/s,burst=1KiB"),
            ("out=1GB/24h,then=drop", "out=1GB/d,then=drop"),
            ("ops=7/m,of=write", "ops=7/m,of=write"),
            (
                "ops=7/500ms,of=redis.set,then=delay",
                "ops=7/500ms,of=redis.set",
            ),
            (
                "ops=1/h,then=error,text=ERR no, not=now,text=x",
                "ops=1/h,then=error,text=ERR no, not=now,text=x",
            ),
        ] {
            let throttle: Throttle = text.parse().unwrap();
            assert_eq!(throttle.to_string(), printed);
            assert_eq!(printed.parse(), Ok(throttle));
        }
    }

    #[test]
    fn other_texts_are_refused_with_what_was_expected() {
        for (text, part) in [
            ("", "ops=N/WINDOW"),
            ("ops", "ops=N/WINDOW"),
            ("reads=1/s", "ops=N/WINDOW"),
            ("ops=1000", "an amount above 0 and a window"),
            ("ops=0/s", "an amount above 0 and a window"),
            ("ops=1MB/s", "an amount above 0 and a window"),
            ("ops=1/0", "an amount above 0 and a window"),
            ("ops=1/367d", "an amount above 0 and a window"),
            ("in=1TB/s", "an amount above 0 and a window"),
            ("ops=1/s,burst=0", "a burst above 0"),
            ("ops=1/s,per=user", "per=server|client"),
            ("ops=1/s,then=wait", "then=delay|error|drop"),
            ("ops=1/s,then=delay,then=drop", "at most once"),
            ("ops=1/s,of=nosuch", "a class or command"),
            ("ops=1/s,of=get@user:*", "without a key pattern"),
        ] {
            let error = text.parse::<Throttle>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    fn at(nanos: u64) -> Stamp {
        Stamp::from_nanos(nanos)
    }

    fn asking(command: &'static str, class: Class, bytes: u64, client: u8) -> Asking<'static> {
        Asking {
            exchange: Exchange {
                protocol: Protocol::Redis,
                command,
                class,
                key: &[],
            },
            bytes,
            client: IpAddr::from([127, 0, 0, client]),
        }
    }

    fn get() -> Asking<'static> {
        asking("get", Class::Read, 20, 1)
    }

    fn throttles(texts: &[&str]) -> Throttles {
        let all: Vec<Throttle> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Throttles::new(&all, at(0))
    }

    /// Turn, or the number of the throttle that refuses.
    fn told(throttles: &mut Throttles, moment: u64, request: &Asking<'_>) -> Result<u64, usize> {
        let answer = throttles.ask(at(moment), request).unwrap();
        answer.refused_by.map_or(Ok(answer.turn.as_nanos()), Err)
    }

    #[test]
    fn a_delaying_throttle_gives_turns_in_the_order_of_asking() {
        let mut both = throttles(&["ops=1000/s,burst=2", "in=10KB/s,burst=30B"]);
        // 2 operations at once, then one per ms; 30 bytes at once, then 10 per ms.
        assert_eq!(told(&mut both, 0, &get()), Ok(0));
        assert_eq!(told(&mut both, 0, &get()), Ok(1_000_000));
        assert_eq!(told(&mut both, 0, &get()), Ok(3_000_000));
        assert_eq!(told(&mut both, 3_500_000, &get()), Ok(5_000_000));
        // Introspection is not selected.
        assert_eq!(both.ask(at(0), &asking("ping", Class::Admin, 5, 1)), None);
    }

    #[test]
    fn a_refused_request_takes_nothing_from_any_throttle() {
        let mut both = throttles(&[
            "ops=1000/s,burst=3,then=error",
            "ops=1/s,burst=1,of=set,then=drop",
        ]);
        let set = asking("set", Class::Write, 30, 1);
        assert_eq!(told(&mut both, 0, &set), Ok(0));
        assert_eq!(told(&mut both, 0, &set), Err(1));
        assert_eq!(told(&mut both, 0, &get()), Ok(0));
        assert_eq!(told(&mut both, 0, &get()), Ok(0));
        assert_eq!(told(&mut both, 0, &get()), Err(0));
        assert_eq!(told(&mut both, 999_999, &get()), Err(0));
        assert_eq!(told(&mut both, 1_000_000, &get()), Ok(1_000_000));
    }

    #[test]
    fn each_address_has_its_own_bucket() {
        let mut own = throttles(&["ops=1/s,per=client,then=error"]);
        let other = asking("get", Class::Read, 20, 2);
        assert_eq!(told(&mut own, 5, &get()), Ok(5));
        assert_eq!(told(&mut own, 5, &other), Ok(5));
        assert_eq!(told(&mut own, 6, &get()), Err(0));
    }

    #[test]
    fn who_comes_late_with_an_earlier_moment_is_not_refused_for_that() {
        let mut server = throttles(&["ops=1000/s,burst=2,then=error"]);
        assert_eq!(told(&mut server, 100, &get()), Ok(100));
        assert_eq!(told(&mut server, 99, &get()), Ok(99));
        assert_eq!(told(&mut server, 98, &get()), Err(0));
        let mut slow = throttles(&["ops=1000/s,burst=2"]);
        assert_eq!(told(&mut slow, 100, &get()), Ok(100));
        assert_eq!(told(&mut slow, 99, &get()), Ok(99));
        assert_eq!(told(&mut slow, 98, &get()), Ok(1_000_100));
    }

    #[test]
    fn clients_whose_buckets_are_full_are_forgotten() {
        let mut own = throttles(&["ops=1000/s,burst=1,per=client,then=error"]);
        for number in 0..3 * CLIENTS_KEPT as u64 {
            let mut request = get();
            let [.., high, low] = number.to_be_bytes();
            request.client = IpAddr::from([10, 0, high, low]);
            assert_eq!(told(&mut own, number * 1_000, &request), Ok(number * 1_000));
        }
        // A millisecond fills a bucket: only the last thousand are not full.
        assert!(own.meters[0].clients.len() <= 2 * CLIENTS_KEPT);
    }

    #[test]
    fn replies_are_counted_when_they_are_known() {
        let mut out = throttles(&["out=1KB/s,burst=100B", "ops=9/s"]);
        let reply = |out: &mut Throttles, moment, bytes| {
            let (turn, _) = out.reply(at(moment), &get(), bytes).unwrap();
            turn.as_nanos()
        };
        assert_eq!(reply(&mut out, 0, 100), 0);
        assert_eq!(reply(&mut out, 0, 250), 250_000_000);
        assert_eq!(told(&mut out, 1, &get()), Ok(1));
        assert_eq!(reply(&mut out, 1, 1), 251_000_000);
        // A quota of bytes refuses who comes while it is overdrawn.
        let mut quota = throttles(&["out=1KB/s,burst=100B,then=error"]);
        assert_eq!(told(&mut quota, 0, &get()), Ok(0));
        assert_eq!(reply(&mut quota, 0, 150), 0);
        assert_eq!(told(&mut quota, 50_000_000, &get()), Err(0));
        assert_eq!(told(&mut quota, 51_000_000, &get()), Ok(51_000_000));
    }
}
