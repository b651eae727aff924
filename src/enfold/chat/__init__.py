"""The chat controller: a session, the model that answers in it, and its slash commands.

`controller` runs turns and finds the model that answers, `commands` is the table of slash commands
with their texts, `meter` shows how full the context is. The terminal and the web UI only draw.
"""
