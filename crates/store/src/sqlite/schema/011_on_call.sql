-- Suspects, which are few: whoever has one is given nothing beside it.
CREATE INDEX job_suspect ON job (id) WHERE suspect;
