-- Version 13. The usage of a reply is found by the id of the message that it becomes.

CREATE INDEX usage_events_by_message ON usage_events (message_id) WHERE message_id IS NOT NULL;
