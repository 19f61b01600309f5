-- How far an attempt got, so that whoever comes next goes on from there: a task id that was paid for, say.
ALTER TABLE job ADD COLUMN progress TEXT;
