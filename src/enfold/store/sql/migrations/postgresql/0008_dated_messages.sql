-- Version 8. Messages whose time is unknown: their created_at only says when they were stored.

ALTER TABLE chat_messages ADD COLUMN is_dated BOOLEAN NOT NULL DEFAULT TRUE;
