"""Bulk: many files of many conversations, condensed or restored into a folder.

`files` finds the input files and plans the output paths, `tasks` processes one conversation,
`workers` are the processes, and `run` runs the task for all files in order. A stopped or killed run
can be continued.
"""
