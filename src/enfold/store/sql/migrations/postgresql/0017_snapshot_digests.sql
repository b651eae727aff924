-- Version 17. A digest of a snapshot's content and manifest; NULL for snapshots of earlier versions.

ALTER TABLE session_snapshots ADD COLUMN digest TEXT;
