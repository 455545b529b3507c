-- A link to an artifact names nothing but its id.
CREATE INDEX artifacts_by_id ON artifacts (id);
