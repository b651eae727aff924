"""The chat page: one session, its messages, and the next message.

`page` is the page, `messages` the list of messages and one message, `turns` the model's answers,
`details` the client, costs and compressions of the session.
"""
