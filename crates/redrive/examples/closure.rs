//! A pipeline with a closure as its handler. `cargo run -p redrive --example closure`

use redrive::{FailureReport, Job, Pipeline, Reason, Redrive, json};

#[tokio::main]
async fn main() -> Result<(), redrive::Error> {
    let redrive = Redrive::open("memory:").await?;
    let prices = Pipeline::new("prices", |job: Job| async move {
        let text = job.input["price"].as_str().unwrap_or_default();
        let price: f64 = text.parse().map_err(|_| FailureReport::new(Reason::SchemaValidation, "no price"))?;
        Ok(json!({"cents": (price * 100.0).round()}))
    })?
    .attempts(3);
    redrive.enqueue(&prices, [json!({"price": "12.50"}), json!({"price": "sold out"})]).await?;
    let ledger = redrive.drain(prices).await?;
    println!("done {}, dead {}", ledger.done, ledger.dead);
    Ok(())
}
