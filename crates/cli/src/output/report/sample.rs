//! Reports to test and show with: a day on which a layout changed at 14:02, one with nothing in it, and a huge one
//! whose names are hostile. Always the same: no clock, no chance.

use std::time::Duration;

use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::time::Timestamp;

use redrive::report::{
    CauseLine, ClockCell, CodeCount, FieldCoverage, HourReport, PipelineReport, Rate, ReasonCount, Report,
};

const HOUR: Duration = Duration::from_secs(3_600);
/// 2026-11-15T18:00:00Z.
const UNTIL: Timestamp = Timestamp::from_millis(1_794_765_600_000);

/// Names that would do harm if they were not made harmless.
const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "</title></style><iframe>",
    "\u{1b}[2J\u{1b}]0;owned\u{7}\r\nsecond line\0",
    "user\u{202e}gpj.exe",
    "価格が見つかりません価格が見つかりません価格が見つかりません",
    "' onmouseover='alert(1)",
    "averyveryveryveryveryveryveryveryveryverylonghostnamewithoutanybreak.averyveryveryverylongdomain.example",
];

/// A report with nothing in it.
pub fn empty() -> Report {
    let hour = |ago: u32| HourReport { hour: UNTIL - HOUR * ago, done: 0, buried: 0, recovered: 0 };
    Report {
        made_at: UNTIL,
        since: UNTIL - HOUR * 24,
        until: UNTIL,
        pipelines: Vec::new(),
        hours: (1..=24).rev().map(hour).collect(),
        reasons: Vec::new(),
        codes: Vec::new(),
        clock: Vec::new(),
        targets: Vec::new(),
        proxies: Vec::new(),
        causes: Vec::new(),
        fields: Vec::new(),
    }
}

/// A day on which a layout changed at 14:02.
pub fn busy() -> Report {
    let buried = [2, 1, 0, 3, 1, 4, 2, 9, 14, 6, 2, 1, 3, 2, 4, 1, 2, 5, 3, 2, 318, 402, 377, 171];
    let day = |hour: usize| 700 + [0, 40, 90, 160, 240, 330, 290, 180][hour % 8] + (hour as i64 * 37) % 90;
    let hour = |(at, buried): (usize, i64)| HourReport {
        hour: UNTIL - HOUR * (24 - at as u32),
        done: day(at) - buried,
        buried,
        recovered: if at == 23 { 46 } else { 0 },
    };
    Report {
        pipelines: vec![
            pipeline("catalog", 7_268, 1_204, 46, 1_311, 52),
            pipeline("captcha", 5_410, 97, 0, 130, 60),
            pipeline("reviews", 4_121, 31, 0, 31, 9),
            pipeline("stock", 3_020, 3, 0, 3, 2),
        ],
        hours: buried.into_iter().enumerate().map(hour).collect(),
        reasons: reasons(&[1_101, 97, 71, 38, 17, 8, 3]),
        codes: busy_codes(),
        clock: busy_clock(),
        targets: busy_targets(),
        proxies: vec![
            rate("dc-fra-2", 811, 402, Some(Reason::Network)),
            rate("res-us", 9_120, 211, Some(Reason::Timeout)),
            rate("res-de", 8_904, 98, Some(Reason::Blocked)),
            rate("direct", 2_204, 0, None),
        ],
        causes: busy_causes(),
        fields: busy_fields(),
        ..empty()
    }
}

/// A report over 90 days with as much of everything as there can be, and hostile names.
pub fn huge() -> Report {
    let hour = |ago: u32| HourReport {
        hour: UNTIL - HOUR * ago,
        done: 91_000 + i64::from(ago % 24) * 2_000,
        buried: i64::from(ago % 97) * 31,
        recovered: i64::from(ago % 13) * 100,
    };
    let text = |at: usize| format!("{}{at}", HOSTILE[at % HOSTILE.len()]);
    let reason = |at: usize| Reason::ALL[at % Reason::ALL.len()];
    let clock =
        |at: usize| ClockCell { hour: (at % 24) as u8, reason: reason(at / 24), count: (at as i64 * 7_919) % 4_000 };
    let named = |at: usize| rate(&text(at), 1_000 * at as i64, 90_000_000 / (at as i64 + 1), Some(reason(at)));
    Report {
        since: UNTIL - HOUR * 2_160,
        pipelines: (0..300)
            .map(|at| pipeline(&format!("{}-{at}", "p".repeat(60)), 1_000_000, 90_000 / (at + 1), at, at, at))
            .collect(),
        hours: (1..=2_160).rev().map(hour).collect(),
        reasons: reasons(&[1_000_000; 17]),
        codes: (0..20).map(|at| CodeCount { code: text(at), count: 1_234_567_890 / (at as i64 + 1) }).collect(),
        clock: (0..24 * 17).map(clock).collect(),
        targets: (0..20).map(named).collect(),
        proxies: (0..20).map(named).collect(),
        causes: (0..20)
            .map(|at| CauseLine {
                state: text(at),
                id: text(at),
                owner: Some(text(at)),
                targets: vec![text(at); 9],
                ..cause(&text(at), reason(at), 9_000_000, 24)
            })
            .collect(),
        fields: (0..400).map(|at| field(&text(at), 1_000, 900, 500, (at as i64 * 13) % 450)).collect(),
        ..empty()
    }
}

fn pipeline(name: &str, done: i64, buried: i64, recovered: i64, dead: i64, oldest_hours: i64) -> PipelineReport {
    let ledger = Ledger {
        accepted: done + dead + 212,
        queued: 204,
        leased: 8,
        done,
        dead,
        retrying: 41,
        recovered,
        ..Ledger::default()
    };
    let oldest_dead = Some(UNTIL - HOUR * u32::try_from(oldest_hours).unwrap_or(0));
    let reason = if name == "captcha" { Reason::Unsolvable } else { Reason::SchemaValidation };
    PipelineReport {
        pipeline: named(name),
        ledger,
        done,
        buried,
        retried: buried / 3 + 12,
        recovered,
        refailed: recovered / 5,
        imported: 0,
        main_reason: (buried > 0).then_some(ReasonCount { reason, count: buried * 9 / 10 }),
        oldest_dead,
    }
}

fn named(name: &str) -> PipelineName {
    name.chars().take(64).collect::<String>().try_into().expect("the samples have names that pipelines may have")
}

fn reasons(counts: &[i64]) -> Vec<ReasonCount> {
    use Reason::*;
    let first = [SchemaValidation, Unsolvable, Timeout, Blocked, NoCapacity, RateLimited, PoisonPill];
    let others = Reason::ALL.iter().copied().filter(|reason| !first.contains(reason));
    first.into_iter().chain(others).zip(counts).map(|(reason, count)| ReasonCount { reason, count: *count }).collect()
}

fn rate(name: &str, ok: i64, failed: i64, top_reason: Option<Reason>) -> Rate {
    Rate { name: name.to_owned(), ok, failed, top_reason }
}

fn cause(title: &str, reason: Reason, buried: i64, since_hours: u32) -> CauseLine {
    CauseLine {
        id: "c-7f3a91".to_owned(),
        state: "ongoing".to_owned(),
        pipeline: named("catalog"),
        reason,
        title: title.to_owned(),
        dead: buried,
        buried,
        trend: (0..24).map(|at| (buried * (at * 7 % 11)) / 100).collect(),
        first_seen: UNTIL - HOUR * since_hours,
        last_seen: UNTIL - HOUR / 4,
        owner: None,
        targets: Vec::new(),
    }
}

fn field(name: &str, records: i64, filled: i64, recent_records: i64, recent_filled: i64) -> FieldCoverage {
    let (pipeline, version) = (named("catalog"), "4be0c1d2".to_owned());
    FieldCoverage { pipeline, version, field: name.to_owned(), records, filled, recent_records, recent_filled }
}

fn busy_codes() -> Vec<CodeCount> {
    let codes = [
        ("SelectorNotFound", 1_081),
        ("ERROR_CAPTCHA_UNSOLVABLE", 97),
        ("exit_1", 64),
        ("HTTP_403", 38),
        ("ERROR_NO_SLOT_AVAILABLE", 17),
        ("SIGKILL", 3),
    ];
    codes.map(|(code, count)| CodeCount { code: code.to_owned(), count }).to_vec()
}

fn busy_clock() -> Vec<ClockCell> {
    let cell = |reason| move |(hour, count): (usize, i64)| ClockCell { hour: hour as u8, reason, count };
    let layout = (14..18).zip([310, 396, 370, 25]);
    let nights = [0, 0, 1, 6, 11, 5, 1, 0, 0, 1, 2, 0, 1, 3, 2, 1, 4, 3, 2, 9, 8, 6, 3, 2].into_iter().enumerate();
    let evenings = [1, 0, 0, 0, 0, 0, 0, 2, 5, 9, 11, 12, 9, 7, 5, 6, 7, 8, 5, 4, 3, 1, 1, 1].into_iter().enumerate();
    let blocked = (8..14).zip([2, 5, 9, 11, 7, 4]);
    let mut cells: Vec<ClockCell> = layout.map(cell(Reason::SchemaValidation)).collect();
    cells.extend(nights.map(cell(Reason::Timeout)));
    cells.extend(evenings.map(cell(Reason::Unsolvable)));
    cells.extend(blocked.map(cell(Reason::Blocked)));
    cells
}

fn busy_targets() -> Vec<Rate> {
    vec![
        rate("shop.example", 3_204, 1_481, Some(Reason::SchemaValidation)),
        rate("outlet.example", 892, 312, Some(Reason::Blocked)),
        rate("api.solver.example", 5_410, 604, Some(Reason::NoCapacity)),
        rate("reviews.example", 4_121, 96, Some(Reason::Timeout)),
        rate("stock.example", 3_020, 3, Some(Reason::Network)),
        rate("cdn.example", 2_871, 0, None),
    ]
}

fn busy_causes() -> Vec<CauseLine> {
    let layout = CauseLine {
        id: "c-91d04e".to_owned(),
        state: "escalating".to_owned(),
        trend: vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 310, 376, 370, 25],
        first_seen: UNTIL - HOUR * 4 + Duration::from_secs(120),
        targets: vec!["shop.example".to_owned()],
        ..cause("SelectorNotFound: .price-tag-main", Reason::SchemaValidation, 1_081, 4)
    };
    let unsolvable = CauseLine {
        pipeline: named("captcha"),
        owner: Some("marta".to_owned()),
        targets: vec!["api.solver.example".to_owned()],
        ..cause("ERROR_CAPTCHA_UNSOLVABLE", Reason::Unsolvable, 97, 300)
    };
    let timeouts = CauseLine {
        state: "new".to_owned(),
        targets: ["shop.example", "outlet.example", "cdn.example", "reviews.example", "stock.example"]
            .map(str::to_owned)
            .to_vec(),
        ..cause("timed out after <n> s while reading the body", Reason::Timeout, 64, 15)
    };
    let blocked = CauseLine {
        state: "regressed".to_owned(),
        targets: vec!["outlet.example".to_owned()],
        owner: Some("jan".to_owned()),
        ..cause("HTTP 403 with a challenge page", Reason::Blocked, 38, 700)
    };
    let slots = CauseLine {
        state: "muted".to_owned(),
        pipeline: named("captcha"),
        ..cause("ERROR_NO_SLOT_AVAILABLE", Reason::NoCapacity, 17, 120)
    };
    let price = CauseLine {
        state: "resolved".to_owned(),
        dead: 0,
        ..cause("price is not of type number at /offers/*/price", Reason::SchemaValidation, 12, 90)
    };
    vec![layout, unsolvable, timeouts, blocked, slots, price]
}

fn busy_fields() -> Vec<FieldCoverage> {
    let mut fields = vec![
        field("title", 7_222, 7_222, 1_480, 1_480),
        field("price", 7_222, 6_141, 1_480, 402),
        field("currency", 7_222, 6_155, 1_480, 415),
        field("rating", 7_222, 4_919, 1_480, 1_003),
        field("image", 7_222, 7_201, 1_480, 1_476),
    ];
    let reviews = [("author", 4_098), ("stars", 4_121), ("verified", 1_920)];
    fields.extend(reviews.map(|(name, filled)| FieldCoverage {
        pipeline: named("reviews"),
        version: "a07731ce".to_owned(),
        ..field(name, 4_121, filled, 612, filled * 612 / 4_121)
    }));
    fields
}
