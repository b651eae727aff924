"""Recall in the proxy: a model looks up what was folded, and its client does not notice.

Once a summary is in use, requests with tools get one more: `recall`. When the model calls it, the
proxy answers from the history of that branch and asks again; the client gets one reply. What was
really said is stored, and sent in place of what the client saw on the turns after it, with the
same bytes, so that a provider's cache goes on to hit.
"""
