-- name: compressions_since
-- Every compression that still holds, with what it made of the view and how many replies came after
-- it. One that was only reworded begins with the same tokens as the one before it and ends at
-- the same message: it freed nothing more.
SELECT s.seq AS key, s.created_at, s.strategy, s.author, x.model, x.profile, x.client,
    x.id AS session, x.title, s.id AS snapshot,
    {tokens_before} AS tokens_before, {tokens_after} AS tokens_after,
    (SELECT count(*) FROM usage_events AS u
     WHERE u.session = s.session AND u.kind = 'reply' AND u.created_at >= s.created_at) AS replies,
    (SELECT CAST(coalesce(sum(u.input_tokens), 0) AS bigint) FROM usage_events AS u
     WHERE u.session = s.session AND u.kind = 'reply' AND u.created_at >= s.created_at)
        AS input_tokens,
    (SELECT CAST(coalesce(sum(u.cached_tokens), 0) AS bigint) FROM usage_events AS u
     WHERE u.session = s.session AND u.kind = 'reply' AND u.created_at >= s.created_at)
        AS cached_tokens,
    -- The calls of a summary are recorded together with it.
    (SELECT coalesce(sum(u.cost), 0.0) FROM usage_events AS u
     WHERE u.session = s.session AND u.kind = 'summary'
        AND u.created_at BETWEEN s.created_at - 1000 AND s.created_at + 1000) AS cost
FROM session_snapshots AS s JOIN sessions AS x ON x.key = s.session
WHERE (x.namespace = :namespace OR x.listed_in = :namespace) AND s.kind = 'summary' AND s.created_at >= :since
    AND NOT EXISTS (SELECT 1 FROM snapshot_undos AS u WHERE u.snapshot = s.seq)
    AND NOT EXISTS (
        SELECT 1 FROM session_snapshots AS p
        WHERE p.session = s.session AND p.id = s.previous_id
            AND p.message_cutoff_id = s.message_cutoff_id
            AND {previous_tokens_before} = {tokens_before}
    )
ORDER BY s.created_at, s.seq

-- name: usage_by_day
SELECT created_at / 86400000 AS day, kind, model, count(*) AS calls,
    CAST(coalesce(sum(input_tokens), 0) AS bigint) AS input_tokens,
    CAST(coalesce(sum(cached_tokens), 0) AS bigint) AS cached_tokens,
    CAST(coalesce(sum(output_tokens), 0) AS bigint) AS output_tokens,
    coalesce(sum(cost), 0.0) AS cost,
    count(*) - count(cost) AS unknown_costs
FROM usage_events
WHERE (session IN (SELECT key FROM sessions WHERE namespace = :namespace OR listed_in = :namespace)
        OR session IS NULL AND (namespace = :namespace OR namespace >= :prefix AND namespace < :end))
    AND created_at >= :since
GROUP BY created_at / 86400000, kind, model
ORDER BY day, kind, model

-- name: insert_failure
-- The session may have been deleted since; then nothing is stored.
INSERT INTO compression_failures (session, code, automatic, created_at)
SELECT key, :code, :automatic, :now FROM sessions WHERE key = :session

-- name: failures_by_day
SELECT created_at / 86400000 AS day, code, count(*) AS failures,
    CAST(sum(automatic) AS bigint) AS automatic
FROM compression_failures
WHERE session IN (SELECT key FROM sessions WHERE namespace = :namespace OR listed_in = :namespace) AND created_at >= :since
GROUP BY created_at / 86400000, code
ORDER BY day, code

-- name: count_pins_since
SELECT count(*) AS amount FROM pins AS p JOIN sessions AS x ON x.key = p.session
WHERE (x.namespace = :namespace OR x.listed_in = :namespace) AND p.pinned = 1
    AND p.created_at >= :since

-- name: trial_snapshots
SELECT s.content_json, s.token_count
FROM session_snapshots AS s JOIN sessions AS x ON x.key = s.session
WHERE (x.namespace = :namespace OR x.listed_in = :namespace) AND s.kind = 'summary'
    AND s.created_at >= :since AND s.content_json LIKE '%"promptVariant":%'
    AND NOT EXISTS (SELECT 1 FROM snapshot_undos AS u WHERE u.snapshot = s.seq)

-- name: pins_since
SELECT x.id AS session, x.title, p.session AS key, p.message, p.created_at
FROM pins AS p JOIN sessions AS x ON x.key = p.session
WHERE (x.namespace = :namespace OR x.listed_in = :namespace) AND p.pinned = 1
    AND p.created_at >= :since
ORDER BY p.created_at DESC, p.message
LIMIT :limit

-- name: insert_recall
INSERT INTO recalls (session, question, created_at)
SELECT key, :question, :now FROM sessions WHERE key = :session

-- name: count_recalls_since
SELECT count(*) AS amount FROM recalls AS r JOIN sessions AS x ON x.key = r.session
WHERE (x.namespace = :namespace OR x.listed_in = :namespace) AND r.created_at >= :since

-- name: recalls_since
SELECT x.id AS session, x.title, r.question, r.created_at
FROM recalls AS r JOIN sessions AS x ON x.key = r.session
WHERE (x.namespace = :namespace OR x.listed_in = :namespace) AND r.created_at >= :since
ORDER BY r.created_at DESC, r.seq DESC
LIMIT :limit
