-- name: pins
SELECT message, pinned FROM pins WHERE session = :session ORDER BY created_at, message

-- name: set_pin
INSERT INTO pins (session, message, pinned, created_at)
VALUES (:session, :message, :pinned, :now)
ON CONFLICT (session, message) DO UPDATE SET pinned = excluded.pinned

-- name: delete_pin
DELETE FROM pins WHERE session = :session AND message = :message
