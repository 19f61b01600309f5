-- How much had been counted of a pipeline when it was forgotten: it is in no list until more is.
ALTER TABLE pipeline ADD COLUMN forgotten_after bigint;
