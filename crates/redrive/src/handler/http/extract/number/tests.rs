//! How numbers on pages are read, and which are refused.

use super::*;

fn told(read: Result<Number, Unread>) -> String {
    match read {
        Ok(number) => number.to_string(),
        Err(Unread::NotOne) => "none".into(),
        Err(Unread::Ambiguous(readings)) => format!("{} or {}", readings.point, readings.comma),
    }
}

fn read(text: &str) -> String {
    told(number(text, Mark::Unstated))
}

fn whole(text: &str) -> String {
    told(integer(text, Mark::Unstated))
}

#[test]
fn plain_numbers_keep_their_digits() {
    let cases = [("12", "12"), ("12.50", "12.50"), ("-3.5", "-3.5"), ("007", "7"), ("0.125", "0.125"), (".99", "0.99")];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn prices_of_many_countries() {
    let cases = [
        ("1,234.50", "1234.50"),
        ("€ 12.99", "12.99"),
        ("12,99 €", "12.99"),
        ("1.234,50 €", "1234.50"),
        ("1 234,50 kr", "1234.50"),
        ("1\u{202f}234\u{a0}€", "1234"),
        ("1’234.50", "1234.50"),
        ("CHF 1'234'567.-", "1234567"),
        ("₹ 1,23,456.00", "123456.00"),
        ("1.299,00", "1299.00"),
        ("1,299.00", "1299.00"),
        ("1'299.00", "1299.00"),
        ("1\u{a0}299,00", "1299.00"),
        ("1 299.500", "1299.500"),
        ("1,00,000", "100000"),
        ("12,5", "12.5"),
        ("1299.99", "1299.99"),
        ("12345.678", "12345.678"),
        ("EUR12.99", "12.99"),
        ("12.99EUR", "12.99"),
        ("Rs.500", "500"),
        ("Price: $ 12.99*", "12.99"),
        ("12,-", "12"),
        ("12,– €", "12"),
        ("2,50 €/kg", "2.50"),
        ("1.234.567", "1234567"),
        ("0,125", "0.125"),
        ("1234,567", "1234.567"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn one_mark_before_three_digits_has_two_readings() {
    let cases = [
        ("1.299", "1.299 or 1299"),
        ("1,299", "1299 or 1.299"),
        ("1.299 €", "1.299 or 1299"),
        ("US$1,299", "1299 or 1.299"),
        ("-12,345", "-12345 or -12.345"),
        ("999.000 kg", "999.000 or 999000"),
        ("Price: 1.299.", "1.299 or 1299"),
        ("(1,204)", "1204 or 1.204"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
        assert_eq!(whole(text), expected, "{text} as an integer: the page may not write integers");
    }
    for text in ["v1.299", "1.299k", "< 1.299", "1.299–1.499", "1.299 - 1.499", "1.299e3"] {
        assert_eq!(read(text), "none", "{text}");
    }
}

#[test]
fn a_dash_for_no_cents_says_that_marks_group() {
    let cases = [
        ("2.499,- €", "2499"),
        ("1.299,–", "1299"),
        ("1,299.-", "1299"),
        ("CHF 1'299.—", "1299"),
        ("1.299.-", "1299"),
        ("1.299.000,--", "1299000"),
        ("12.50,-", "none"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
    assert_eq!(told(number("2.499,-", Mark::Comma)), "2499");
    assert_eq!(told(number("2.499,-", Mark::Point)), "none", "a fraction and no cents");
}

#[test]
fn signs_counts_and_shares() {
    let cases = [
        ("-20%", "-20"),
        ("− 5", "-5"),
        ("–5 °C", "-5"),
        ("–20 %", "-20"),
        ("‑5", "-5"),
        ("‐5", "-5"),
        ("－5", "-5"),
        ("€ –.50", "-0.50"),
        ("(.5)", "0.5"),
        ("about .5", "0.5"),
        ("-€5.00", "-5.00"),
        ("€-5", "-5"),
        ("(204)", "204"),
        ("100+ sold", "100"),
        ("12 m²", "12"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn what_could_mean_something_else_is_refused() {
    let refused = [
        "",
        "Sold out",
        "12 - 15",
        "12–15",
        "4.5 out of 5",
        "2024-01-02",
        "10:30",
        "1/2",
        "1.5k",
        "1.5 K",
        "2 M",
        "3 million",
        "3 Millions",
        "v2",
        "A4",
        "SKU-123",
        "from - 5",
        "from – 5",
        "—5",
        "— 5 °C",
        "SKU‑5",
        "–-5",
        "5‑",
        "Only...5 left",
        "₹.500",
        "€,50",
        "12 99",
        "12\u{200a}99",
        "12\u{200a}500",
        "< 5",
        "10^3",
        "12,34,5",
        "1.2.3",
        "1 23",
        "5-",
        "5g",
        "٣",
        "½",
        "1½",
        "1,234,56",
        "1'234,567,8",
        "--5",
        "0.125.000",
        "0 125",
    ];
    for text in refused {
        assert_eq!(read(text), "none", "{text}");
    }
    assert_eq!(read(&"9".repeat(41)), "none");
}

#[test]
fn integers() {
    let cases =
        [("1,234,567", "1234567"), ("1 234", "1234"), ("12.00", "12"), ("12.5", "none"), ("(7)", "7"), ("-0", "0")];
    for (text, expected) in cases {
        assert_eq!(whole(text), expected, "{text}");
    }
}

#[test]
fn a_stated_mark_settles_it() {
    let with = |text, mark| number(text, mark).ok().map(|number| number.to_string());
    assert_eq!(with("1.234", Mark::Comma).as_deref(), Some("1234"));
    assert_eq!(with("1,234", Mark::Comma).as_deref(), Some("1.234"));
    assert_eq!(with("1,234", Mark::Point).as_deref(), Some("1234"));
    assert_eq!(with("12,99", Mark::Point), None);
    assert_eq!(with("1.2", Mark::Comma), None);
}

#[test]
fn any_text_is_survived() {
    for text in ["é1é", "1é", "💰1💰", "١1", ".", "1.", "..1", ",1,", "1,.2", "'1", "1 ", "\u{a0}1\u{a0}"] {
        let _ = (number(text, Mark::Unstated), integer(text, Mark::Comma));
    }
}
