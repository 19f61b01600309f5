-- The file that results went to when a definition was last worked on with one, as JSON.
ALTER TABLE definition ADD COLUMN results TEXT;
