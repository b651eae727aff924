-- Version 7. An index that finds waiting work by its kind.

DROP INDEX flush_outbox_by_due;

CREATE INDEX flush_outbox_by_kind ON flush_outbox (kind, due_at, seq) WHERE done_at IS NULL;

CREATE INDEX flush_outbox_by_session ON flush_outbox (session, kind, due_at, seq) WHERE done_at IS NULL;
