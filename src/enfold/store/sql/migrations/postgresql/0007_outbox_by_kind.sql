-- Version 7. Work of one kind is found without looking through what waits of another.

DROP INDEX flush_outbox_by_due;

CREATE INDEX flush_outbox_by_kind ON flush_outbox (kind, due_at, seq) WHERE done_at IS NULL;

CREATE INDEX flush_outbox_by_session ON flush_outbox (session, kind, due_at, seq) WHERE done_at IS NULL;
