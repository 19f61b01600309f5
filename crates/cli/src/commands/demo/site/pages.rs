//! The site's pages: templates from `pages/`, filled with the goods.
//!
//! A page carries its style and picture inside, so that a saved payload looks right with the site switched off.

use super::catalogue::{self, Behaviour, PRODUCTS};
use super::goods;

const OLD_LAYOUT: &str = include_str!("pages/old_layout.html");
const NEW_LAYOUT: &str = include_str!("pages/new_layout.html");
const OLD_STYLE: &str = include_str!("pages/old_style.css");
const NEW_STYLE: &str = include_str!("pages/new_style.css");
const INDEX: &str = include_str!("pages/index.html");
const NOTICE: &str = include_str!("pages/notice.html");
const CHALLENGE: &str = include_str!("pages/challenge.html");
const IMAGE: &str = include_str!("pages/image.svg");

/// The page of a product, in the layout of its half of the catalogue.
pub(super) fn product(number: u32) -> String {
    let (template, style) = match catalogue::of_page(number) {
        Behaviour::NewLayout | Behaviour::PriceOnRequest => (NEW_LAYOUT, NEW_STYLE),
        _ => (OLD_LAYOUT, OLD_STYLE),
    };
    let specification = goods::specification(number);
    let values = [
        ("style", style.to_owned()),
        ("number", number.to_string()),
        ("title", goods::title(number)),
        ("price", goods::price(number)),
        ("price_tag", price_tag(number)),
        ("image", data_url(&image(number))),
        ("image_path", goods::image_path(number)),
        ("lead", goods::paragraph(number, 0)),
        ("more", goods::paragraph(number, 1)),
        ("care", goods::paragraph(number, 2)),
        ("tags", each(goods::tags(number), |tag| format!("<li class=\"tag\">{tag}</li>"))),
        ("specification", each(specification, |(name, value)| format!("<tr><th>{name}</th><td>{value}</td></tr>"))),
        ("reviews", each(goods::reviews(number), review)),
        ("related", each(related(number), related_item)),
    ];
    fill(template, &values)
}

/// The new layout's price, or what stands in its place.
fn price_tag(number: u32) -> String {
    if catalogue::of_page(number) == Behaviour::PriceOnRequest {
        return "<div class=\"price on-request\">Price on request</div>".to_owned();
    }
    let price = goods::price(number);
    format!("<div class=\"price\"><data value=\"{price}\">€ {price}</data><small>incl. VAT</small></div>")
}

fn review((customer, stars, text): (&str, usize, &str)) -> String {
    let shown = "★".repeat(stars) + &"☆".repeat(5 - stars);
    format!("<li><b>{customer}</b> <span class=\"stars\" title=\"{stars} of 5\">{shown}</span><p>{text}</p></li>\n")
}

fn related(number: u32) -> impl Iterator<Item = u32> {
    [1, 12, 29, 53].into_iter().map(move |step| (number - 1 + step) % PRODUCTS + 1)
}

fn related_item(number: u32) -> String {
    let picture = data_url(&image(number));
    let title = goods::title(number);
    format!("<li><a href=\"/products/{number}\"><img src=\"{picture}\" alt=\"\"><span>{title}</span></a></li>\n")
}

/// The list of all products and what each of them does.
pub(super) fn index() -> String {
    let row = |number| {
        let (title, behaviour) = (goods::title(number), catalogue::of_page(number).describe());
        format!("<tr><td>{number}</td><td><a href=\"/products/{number}\">{title}</a></td><td>{behaviour}</td></tr>\n")
    };
    fill(INDEX, &[("style", OLD_STYLE.to_owned()), ("rows", each(1..=PRODUCTS, row))])
}

/// A short page in place of the one asked for.
pub(super) fn notice(title: &str, text: &str) -> String {
    fill(NOTICE, &[("style", OLD_STYLE.to_owned()), ("title", title.to_owned()), ("text", text.to_owned())])
}

/// The page of a guard that takes the client for a robot.
pub(super) fn challenge() -> String {
    CHALLENGE.to_owned()
}

/// A product's picture.
pub(super) fn image(number: u32) -> String {
    let hue = number * 47 % 360;
    let values = [
        ("hue", hue.to_string()),
        ("other_hue", ((hue + 40) % 360).to_string()),
        ("radius", (24 + number * 11 % 60).to_string()),
        ("tilt", (number * 17 % 40).to_string()),
    ];
    fill(IMAGE, &values)
}

fn data_url(svg: &str) -> String {
    let mut url = String::from("data:image/svg+xml,");
    for character in svg.trim_end().chars() {
        match character {
            '<' => url += "%3C",
            '>' => url += "%3E",
            '#' => url += "%23",
            '%' => url += "%25",
            '"' => url.push('\''),
            '\n' => url.push(' '),
            other => url.push(other),
        }
    }
    url
}

fn each<T>(items: impl IntoIterator<Item = T>, html: impl Fn(T) -> String) -> String {
    items.into_iter().map(html).collect()
}

/// Replaces each `{{name}}`. The goods are our own words, so nothing needs escaping.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(template.to_owned(), |page, (name, value)| page.replace(&format!("{{{{{name}}}}}"), value))
}
