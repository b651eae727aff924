-- name: put_response
INSERT INTO responses (session, id, tip, snapshot, created_at, lead)
VALUES (:session, :id, :tip, :snapshot, :now, :lead)
ON CONFLICT (session, id) DO NOTHING

-- name: response_key
SELECT seq FROM responses WHERE session = :session AND id = :id

-- name: insert_response_item
INSERT INTO response_items (response, place, id, content)
VALUES (:response, :place, :id, :content)

-- name: drop_old_responses
DELETE FROM responses WHERE created_at < :before

-- name: response
-- The last one, if two sessions have the same.
SELECT r.seq, r.session, r.id, r.tip, r.snapshot, r.lead
FROM responses AS r JOIN sessions AS s ON s.key = r.session
WHERE r.id = :id AND s.namespace = :namespace
ORDER BY r.seq DESC
LIMIT 1

-- name: items_of_response
SELECT id, content FROM response_items WHERE response = :response ORDER BY place

-- name: response_item
SELECT i.content
FROM response_items AS i
    JOIN responses AS r ON r.seq = i.response
    JOIN sessions AS s ON s.key = r.session
WHERE i.id = :id AND s.namespace = :namespace
ORDER BY r.seq DESC
LIMIT 1
