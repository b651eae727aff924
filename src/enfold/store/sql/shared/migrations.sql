-- name: create_migrations
CREATE TABLE schema_migrations (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)

-- name: version
SELECT coalesce(max(version), 0) AS version FROM schema_migrations

-- name: insert_migration
INSERT INTO schema_migrations (version, name, applied_at) VALUES (:version, :name, :now)
