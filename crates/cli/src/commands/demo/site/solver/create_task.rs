//! The `createTask` / `getTaskResult` form: JSON in, JSON out, `errorId` 0 unless something is wrong.

use serde_json::{Value, json};

use super::super::wire::{Request, Response};
use super::{Refusal, Solver};

/// `createTask`: takes a task in.
pub fn submit(solver: &mut Solver, request: &Request) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return not_json() };
    let text = |pointer| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match solver.submit(text("/clientKey"), text("/task/websiteKey"), text("/task/websiteURL")) {
        Ok(id) => Response::json(200, &json!({ "errorId": 0, "taskId": id })),
        Err(refusal) => refused(refusal),
    }
}

/// `getTaskResult`: the solution, or not yet.
pub fn poll(solver: &mut Solver, request: &Request) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else { return not_json() };
    let key = body["clientKey"].as_str().unwrap_or_default();
    // Clients send the id as the number it was or as text.
    let id = body["taskId"].as_u64().or_else(|| body["taskId"].as_str()?.parse().ok());
    let answer = match solver.poll(key, id.unwrap_or_default()) {
        Ok(None) => json!({ "errorId": 0, "status": "processing" }),
        Ok(Some(token)) => {
            json!({ "errorId": 0, "status": "ready", "solution": { "gRecaptchaResponse": token }, "cost": "0.00299" })
        }
        Err(refusal) => return refused(refusal),
    };
    Response::json(200, &answer)
}

fn refused(refusal: Refusal) -> Response {
    let (code, description) = match refusal {
        Refusal::NoSuchKey => ("ERROR_KEY_DOES_NOT_EXIST", "there is no account with this key"),
        Refusal::NoMoney => ("ERROR_ZERO_BALANCE", "the account has no money left"),
        Refusal::Banned => ("ERROR_IP_BLOCKED", "your address is blocked"),
        Refusal::NoSlot => ("ERROR_NO_SLOT_AVAILABLE", "no worker is free, try again later"),
        Refusal::WrongSitekey => ("ERROR_RECAPTCHA_INVALID_SITEKEY", "this is not a sitekey of that page"),
        Refusal::NoPage => ("ERROR_TASK_ABSENT", "the task or its websiteURL is missing"),
        Refusal::NoSuchTask => ("ERROR_NO_SUCH_CAPCHA_ID", "there is no task with this id"),
        Refusal::Unsolvable => ("ERROR_CAPTCHA_UNSOLVABLE", "the workers gave up on it"),
        Refusal::Unheard => ("ERROR_MOON_PHASE", "the moon is in the wrong phase"),
    };
    error(code, description)
}

fn not_json() -> Response {
    error("ERROR_BAD_REQUEST", "the request is not JSON")
}

fn error(code: &str, description: &str) -> Response {
    Response::json(200, &json!({ "errorId": 1, "errorCode": code, "errorDescription": description }))
}
