-- name: acquire
-- Take a lease that is free or has expired.
INSERT INTO leases (name, session, holder, expires_at)
VALUES (:name, :session, :holder, :expires_at)
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, session = excluded.session, expires_at = excluded.expires_at
WHERE leases.expires_at <= :now

-- name: shorten_lease
-- A lease that ends later than a new one would was taken before the clock was set back.
UPDATE leases SET expires_at = :expires_at WHERE name = :name AND expires_at > :expires_at

-- name: renew
UPDATE leases SET expires_at = :expires_at
WHERE name = :name AND holder = :holder AND expires_at > :now

-- name: release
DELETE FROM leases WHERE name = :name AND holder = :holder
