//! The shop's products: names, prices and texts, invented from the product's number.
//!
//! Nothing here is random: the same number is the same product in every run, and a test can say what a record must hold.

use serde_json::{Value, json};

const QUALITIES: [&str; 10] =
    ["Linen", "Walnut", "Stoneware", "Brass", "Wool", "Cork", "Enamel", "Oak", "Glass", "Cotton"];
const THINGS: [&str; 12] = [
    "desk lamp",
    "tea pot",
    "bread board",
    "door mat",
    "fruit bowl",
    "wall clock",
    "reading chair",
    "letter tray",
    "plant stand",
    "pepper mill",
    "picture frame",
    "laundry basket",
];
const SENTENCES: [&str; 10] = [
    "It is made in a small workshop that has done little else for forty years, and it shows in the joints.",
    "The surface is finished with plain oil, so a scratch is mended with a cloth and ten quiet minutes.",
    "We have used one in our own kitchen since spring and have yet to find the thing it minds.",
    "Every piece differs a little in colour and grain; the photograph shows one of them, not yours.",
    "Parts that wear out can be ordered singly, from the felt underneath to the smallest screw.",
    "It arrives in cardboard and paper, with no plastic at all, and the box is made to be used again.",
    "Sized for a real home: it fits the usual shelf, and a person of average patience can carry it.",
    "Clean it with lukewarm water and leave the dishwasher to things that are in more of a hurry.",
    "The design dates from the fifties and was changed once since, when somebody found a better hinge.",
    "If it breaks within ten years we mend it, and if we cannot mend it you get another.",
];
const TAGS: [&str; 9] =
    ["home", "kitchen", "handmade", "gift", "repairable", "plastic-free", "bestseller", "small-batch", "classic"];
const CUSTOMERS: [&str; 8] = ["Amara", "Jonas", "Mei", "Ruth", "Tomasz", "Ines", "Kofi", "Lena"];

/// The name of a product; no two of the catalogue's are the same.
pub(super) fn title(number: u32) -> String {
    format!("{} {}", pick(&QUALITIES, number * 7), pick(&THINGS, number * 5 + number.saturating_sub(1) / 60))
}

/// The price of a product, as both layouts write it.
pub fn price(number: u32) -> String {
    let cents = 1299 + number.saturating_sub(1) * 389 % 8600;
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// A paragraph about a product; each `part` is another one.
pub(super) fn paragraph(number: u32, part: u32) -> String {
    let first = number + part * 3;
    (first..first + 3).map(|at| pick(&SENTENCES, at)).collect::<Vec<_>>().join(" ")
}

/// Three tags.
pub(super) fn tags(number: u32) -> [&'static str; 3] {
    [pick(&TAGS, number), pick(&TAGS, number + 2), pick(&TAGS, number + 5)]
}

/// The specification, as names and values.
pub(super) fn specification(number: u32) -> [(&'static str, String); 5] {
    [
        ("Article", format!("HR-{:05}", 20_000 + number * 17)),
        ("Material", pick(&QUALITIES, number * 7).to_lowercase()),
        ("Size", format!("{} × {} × {} cm", 12 + number % 20, 9 + number % 14, 5 + number % 11)),
        ("Weight", format!("{} g", 340 + number * 13 % 2100)),
        ("Delivery", format!("{} working days", 2 + number % 3)),
    ]
}

/// Reviews: who, how many stars, what.
pub(super) fn reviews(number: u32) -> impl Iterator<Item = (&'static str, usize, &'static str)> {
    (0..5).map(move |at| {
        (pick(&CUSTOMERS, number + at), 3 + (number + at) as usize % 3, pick(&SENTENCES, number * 3 + at))
    })
}

/// The product as the JSON endpoint tells it.
pub(super) fn document(number: u32) -> Value {
    json!({
        "number": number,
        "title": title(number),
        "price": { "amount": price(number), "currency": "EUR" },
        "tags": tags(number),
        "description": [paragraph(number, 0), paragraph(number, 1)],
        "image": image_path(number),
    })
}

/// Where a product's picture is.
pub(super) fn image_path(number: u32) -> String {
    format!("/images/{number}.svg")
}

fn pick<T: Copy>(from: &[T], at: u32) -> T {
    from[at as usize % from.len()]
}
