//! Stores of versions 4 and 5, with rows in all of their tables.

pub const VERSION_4: [&str; 4] = [
    include_str!("../../src/sqlite/schema/001_jobs.sql"),
    include_str!("../../src/sqlite/schema/002_payloads.sql"),
    include_str!("../../src/sqlite/schema/003_progress.sql"),
    include_str!("../../src/sqlite/schema/004_causes.sql"),
];

/// Job `xNN` stands for the id that ends in NN, payload `pNN` for the hash of NN only.
const ROWS: &str = r#"
    PRAGMA application_id = 0x52445256; PRAGMA user_version = 4;
    INSERT INTO pipeline (id, name, epoch, accepted, queued, leased, done, dead, discarded, retrying, recovered, replaying)
    VALUES (1, 'suite', 7, 12, 3, 1, 1, 6, 1, 1, 0, 1);

    INSERT INTO job (seq, id, pipeline, key, target, accepted_at, due_at, attempts, attempts_before, replays, reason, input, replay,
                     saved, cause_key)
    VALUES (1, x01, 1, 'k1', NULL, 0, 0, 0, 0, 0, NULL, '{"n":1}', NULL, NULL, NULL),
           (2, x02, 1, NULL, 'ill', 0, 0, 0, 0, 0, NULL, '{"n":2}', NULL, NULL, NULL),
           (3, x03, 1, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"n":3}', NULL, NULL, NULL),
           (4, x04, 1, NULL, NULL, 0, 0, 1, 1, 1, 'handler_error', '{"n":4}', 1, NULL, 1);
    INSERT INTO queue VALUES (1, 0, 1);
    INSERT INTO held VALUES (1, 'ill', 2);
    INSERT INTO lease VALUES (x03, 3, x99, x98, 7, 5000, 1);
    INSERT INTO identity VALUES (1, 'k1', x01), (1, 'k5', x05), (1, '0123456789abcdef01234567:12', x02),
        (1, '0123456789abcdef0123456x:12', x02), (1, '0123456789abcdef01234568:x', x02);
    INSERT INTO breaker VALUES (1, 'ill', 1, 1, '{"state":"open","since":"2020-01-01T00:00:00Z","open_until":"2020-01-01T00:05:00Z",
        "attempts":9,"failures":9,"blocked":0,"openings":1,"probes_out":0,"probes_ok":0}');
    INSERT INTO worker VALUES (x99, 4242, 0);
    INSERT INTO done VALUES (x05, 1, 'k5', NULL, 0, 1000, 1, 0, 0);
    INSERT INTO discarded VALUES (x06, 1, NULL, NULL, 'dead', 'timeout', NULL, 4, 0, 0, 0, 900, 1000, 'ada', 'old');
    INSERT INTO late VALUES (x05, 2000, x99, 6, 'done', NULL);

    INSERT INTO cause (id, name, pipeline, owner) VALUES (1, 'c1', 1, 'ada');
    INSERT INTO cause_key (id, key, cause, origin, template, reason, parts, sample, first_seen, last_seen, total, dead)
    VALUES (1, 'k', 1, 1, 'task <n> broke', 'handler_error', '[]', 'task 1 broke', 0, 6000, 7, 6);
    -- Part of it was split off; that part was resolved, and came back.
    INSERT INTO cause (id, name, pipeline, regressed_at) VALUES (2, 'c2', 1, 6000);
    INSERT INTO cause_key (id, key, cause, origin, template, reason, parts, sample, first_seen, last_seen, total)
    VALUES (2, 'k/target=far', 2, 2, 'task <n> broke [target=far]', 'handler_error', '[]', 'task 1 broke', 0, 6000, 1);
    INSERT INTO cause_split VALUES (1, 'far', NULL, 2);
    INSERT INTO cause_note VALUES (1, 1, 'ada', 'looking at it');
    INSERT INTO cause_hour VALUES (1, 0, 7);
    INSERT INTO cause_target VALUES (1, 'shop', 7, 6000);

    INSERT INTO dead (id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message, input,
                      cause_key, payload, payload_cut)
    VALUES (x11, 1, 0, 1000, 1000, 2, 0, 0, 'review', 'handler_error', 'task 1 broke', '{}', 1, pcc, 0),
           (x12, 1, 0, 2000, 2000, 1, 0, 0, 'review', 'handler_error', 'task 2 broke', '{}', 1, pbb, 0),
           (x13, 1, 0, 3000, 3000, 1, 0, 0, 'auto', 'handler_error', 'task 3 broke', '{}', 1, NULL, 0),
           (x14, 1, 0, 4000, 4000, 1, 0, 0, 'auto', 'handler_error', 'task 4 broke', '{}', 1, NULL, 0),
           (x15, 1, 0, 5000, 5000, 1, 0, 0, 'review', 'handler_error', 'task 5 broke', '{}', 1, pee, 0),
           (x16, 1, 0, 6000, 6000, 1, 0, 0, 'review', 'handler_error', 'task 6 broke', '{}', 1, NULL, 0);
    INSERT INTO failure SELECT id, 1, json_object('at', '2026-11-15T14:02:00Z', 'attempt', 1, 'replay', 0,
        'reason', reason, 'message', message) FROM dead;
    INSERT INTO failure VALUES (x04, 1, json_object('at', '2026-11-15T14:02:00Z', 'attempt', 1, 'replay', 0,
        'reason', 'handler_error', 'message', 'task 9 broke'));

    -- x11: the newer of its two pages was collected. x12 was imported: nothing claims its page. x15 was imported without its
    -- page. x16: its last attempt brought none. x04 is under way, and was imported with a page.
    INSERT INTO payload VALUES (paa, 'aa/PLACEaa', 3, 2, 0, 0), (pbb, 'bb/PLACEbb', 3, 2, 0, 0), (pdd, 'dd/PLACEdd', 3, 2, 0, 0),
                               (pff, 'ff/PLACEff', 3, 2, 0, 0), (p12, '12/PLACE12', 3, 2, 0, 0);
    INSERT INTO payload_use VALUES (x11, paa, 500, '{"hash":"HASHaa","size_bytes":3,"truncated":true}'),
                                   (x11, pcc, 900, '{"hash":"HASHcc","size_bytes":3}'),
                                   (x16, pff, 900, '{"hash":"HASHff","size_bytes":3}');

    INSERT INTO replay (id, uuid, name, actor, mode, state, automatic, selection, pipelines, pacing, edits, excluded, created_at,
                        total, pending, running, step, step_sent)
    VALUES (1, x77, 'r', 'ada', 'refetch', 'running', 0, '{}', '["suite"]', '{"ramp":[1],"refail_max":0.5}', '{}', '{}', 0,
            2, 1, 1, 0, 1);
    INSERT INTO replay_letter (replay, n, job, pipeline, cause_key, state, claimed, letter)
    VALUES (1, 1, x04, 1, 1, 'running', 1, json_object('gate', 'review', 'died_at', 900, 'kept_from', 900, 'http_status', NULL,
            'proxy', NULL, 'message', 'task 9 broke', 'verdict', NULL, 'cut', 0, 'payload', 'HASH12')),
           (1, 2, x14, 1, 1, 'pending', 1, NULL);
    INSERT INTO replay_queue VALUES (1, 1, 0, 4);
    INSERT INTO auto_replay VALUES (1, 'timeout', 0);
    INSERT INTO hourly VALUES (1, 0, 'buried', 'handler_error', 7);
    INSERT INTO traffic VALUES (1, 0, 'shop', '', 'handler_error', 7);
    INSERT INTO coverage VALUES (1, 'v', 0, 'price', 3, 1);
    INSERT INTO tracked VALUES (1, 'sitekey', 'k1', -1, 2, 0);
"#;

/// What only version 5 has.
pub const ROWS_5: &str = r#"
    PRAGMA user_version = 5;
    INSERT INTO clock VALUES (1, '{"at":"2020-01-01T00:00:00Z","uptime":null,"wait":null}');
    INSERT OR IGNORE INTO store_id VALUES ('0198f2c57d3e7a10', 'own', NULL, NULL);
    INSERT INTO condemned VALUES ('aa/nowhere', 0);
"#;

pub fn bytes(last: u8) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[15] = last;
    bytes
}

/// The rows with ids, hashes and places written out.
pub fn rows() -> String {
    let mut rows = ROWS.to_owned();
    for byte in 0..=255_u8 {
        let hex = format!("{byte:02x}");
        let whole = hex.repeat(32);
        rows = rows
            .replace(&format!("PLACE{hex}"), &format!("{whole}-00000001.zst"))
            .replace(&format!("HASH{hex}"), &whole);
        for (end, after) in [(",", ","), (")", ")")] {
            rows = rows
                .replace(&format!("x{hex}{end}"), &format!("x'{:0>32}'{after}", hex))
                .replace(&format!("p{hex}{end}"), &format!("x'{whole}'{after}"));
        }
    }
    rows
}
