"""Recognizers: each finds one family of personal data in a text and scores it.

They see a readable view of the text (``view``) and return spans into that view; they
keep no state between texts, so one set serves every thread.
"""
