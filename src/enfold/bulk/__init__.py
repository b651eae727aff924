"""Bulk: many files of many conversations, condensed or restored into a folder.

`layout` says which files are meant and where their results go, `work` is what is done with one
conversation, `running` does it for all of them: over several processes, in order, and so that a run
which is stopped or killed can go on where it was.
"""
