//! The `in.php` / `res.php` form: parameters in the query or a form, `{"status":…,"request":…}` or plain text out.

use serde_json::json;

use super::super::wire::{Request, Response};
use super::{Refusal, Solver};

/// `in.php`: takes a task in.
pub fn submit(solver: &mut Solver, request: &Request) -> Response {
    let parameter = |name| request.parameter(name).unwrap_or_default();
    let id = solver.submit(&parameter("key"), &parameter("googlekey"), &parameter("pageurl"));
    say(request, id.map(|id| id.to_string()).map_err(code))
}

/// `res.php?action=get`: the token, or not yet.
pub fn poll(solver: &mut Solver, request: &Request) -> Response {
    let parameter = |name| request.parameter(name).unwrap_or_default();
    if parameter("action") != "get" {
        return say(request, Err("ERROR_EMPTY_ACTION"));
    }
    let token = match parameter("id").parse() {
        Ok(id) => solver.poll(&parameter("key"), id).map_err(code),
        Err(_) => Err("ERROR_WRONG_ID_FORMAT"),
    };
    say(request, token.and_then(|token| token.ok_or("CAPCHA_NOT_READY")))
}

fn say(request: &Request, result: Result<String, &'static str>) -> Response {
    if request.parameter("json").as_deref() == Some("1") {
        let (status, text) = result.map_or_else(|code| (0, code.to_owned()), |text| (1, text));
        return Response::json(200, &json!({ "status": status, "request": text }));
    }
    Response::text(result.map_or_else(str::to_owned, |text| format!("OK|{text}")))
}

const fn code(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::NoSuchKey => "ERROR_KEY_DOES_NOT_EXIST",
        Refusal::NoMoney => "ERROR_ZERO_BALANCE",
        Refusal::Banned => "IP_BANNED",
        Refusal::NoSlot => "ERROR_NO_SLOT_AVAILABLE",
        Refusal::WrongSitekey => "ERROR_WRONG_GOOGLEKEY",
        Refusal::NoPage => "ERROR_PAGEURL",
        Refusal::NoSuchTask => "ERROR_WRONG_CAPTCHA_ID",
        Refusal::Unsolvable => "ERROR_CAPTCHA_UNSOLVABLE",
        Refusal::Unheard => "ERROR_MOON_PHASE",
    }
}
