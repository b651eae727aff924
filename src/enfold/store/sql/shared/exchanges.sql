-- name: put_exchange
-- The same text may come again after other calls; the provider knows the last one.
INSERT INTO exchanges (session, snapshot, message, shown, dialect, created_at, content)
VALUES (:session, :snapshot, :message, :shown, :dialect, :now, :content)
ON CONFLICT (session, snapshot, message, shown)
DO UPDATE SET dialect = excluded.dialect, content = excluded.content

-- name: exchanges_under
SELECT snapshot, message, shown, dialect, content
FROM exchanges
WHERE session = :session AND snapshot = :snapshot
ORDER BY seq
