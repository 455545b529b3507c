-- What the server knows its own words by: drawn at the next opening, and never changed after that.
ALTER TABLE store ADD COLUMN mac_key BLOB;
