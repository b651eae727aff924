-- name: namespace_of
SELECT namespace, listed_in FROM sessions WHERE key = :session

-- name: insert_text
INSERT INTO message_texts (message, session, text) VALUES (:message, :session, :text)

-- name: texts_after_key
SELECT message AS key, text FROM message_texts
WHERE session = :session AND message > :key
ORDER BY message
LIMIT :limit

-- name: hits
SELECT m.seq AS key, m.session, s.id AS session_id, m.id AS message, m.depth, m.role,
    m.created_at, t.text
FROM {keys} AS k
JOIN chat_messages AS m ON m.seq = k.value
JOIN sessions AS s ON s.key = m.session
JOIN message_texts AS t ON t.message = m.seq

-- name: texts
SELECT t.message AS key, t.text FROM {keys} AS k JOIN message_texts AS t ON t.message = k.value

-- name: message_time
SELECT created_at FROM chat_messages WHERE seq = :key

-- name: newest_key
SELECT max(seq) AS key FROM chat_messages

-- name: spots_of_line
-- The small columns of the rows that `line` returns.
WITH RECURSIVE line (seq, parent, depth) AS (
    SELECT m.seq, m.parent, m.depth FROM chat_messages AS m WHERE m.seq = :bottom
    UNION ALL
    SELECT m.seq, m.parent, m.depth FROM line JOIN chat_messages AS m ON m.seq = line.parent
    WHERE line.depth > :above + 1 AND m.depth < line.depth
)
SELECT m.seq AS key, m.id, m.depth, m.role, m.name, m.tokens, m.created_at, m.is_dated
FROM line JOIN chat_messages AS m ON m.seq = line.seq
WHERE m.depth > :above
