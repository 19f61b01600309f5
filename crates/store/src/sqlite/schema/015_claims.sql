-- Until when a process writes the result of a leased job to a file; others that settle the job wait.
ALTER TABLE lease ADD COLUMN claimed_until INTEGER NOT NULL DEFAULT 0;
