"""The settings pages: settings of all sessions or of one, strategies, profiles, prompts, models.

`page` is the page with its sections, `scope` the sessions whose settings are changed; every other
module is a section. The engine validates every value.
"""
