"""Answers in words: documents, and the forms in which they are written."""
