//! Failures of which no more is known than what somebody tells of them.

use super::{Failure, FailureReport, Reason};
use crate::time::Timestamp;

impl Failure {
    /// A failure of which no more is known than what was told of it.
    pub fn told(report: &FailureReport, reason: Reason, at: Timestamp) -> Self {
        Self {
            at,
            attempt: 0,
            replay: 0,
            reason,
            crash: false,
            probe: false,
            code: report.code.clone(),
            message: report.message.clone(),
            misses: report.misses.clone(),
            error_type: report.error_type.clone(),
            stack: report.stack.clone(),
            stage: report.stage.clone(),
            http_status: report.http_status,
            target: None,
            proxy: report.proxy.clone(),
            task_id: report.task_id.clone(),
            retry_after_secs: report.retry_after_secs,
            stderr: None,
            worker: None,
            duration_ms: None,
            payload: None,
            definition: None,
        }
    }
}
