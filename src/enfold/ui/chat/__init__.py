"""The chat page: one session, its messages, and the next message.

`page` is the page, `transcript` the list of messages, `messages` one message, `turns` the model's
answers.
"""
