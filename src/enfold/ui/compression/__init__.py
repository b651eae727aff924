"""Compressions on a page: running ones, their outcomes, summaries and changes.

`controls` follows the compressions of a session and starts them, `preview` is the dialog before
one, `summary_card` shows one in the chat, `changes` is the page of one compression.
"""
