-- name: namespace_of
SELECT namespace FROM sessions WHERE key = :session

-- name: insert_text
INSERT INTO message_texts (message, session, text) VALUES (:message, :session, :text)

-- name: hits
SELECT m.seq AS key, m.session, s.id AS session_id, m.id AS message, m.depth, m.role,
    m.created_at, t.text
FROM {keys} AS k
JOIN chat_messages AS m ON m.seq = k.value
JOIN sessions AS s ON s.key = m.session
JOIN message_texts AS t ON t.message = m.seq
