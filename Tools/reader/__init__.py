"""A second reader of the store format, written from FileFormat.md and from nothing else.

It shares no code with the engine, so that what both read alike is what the document says. It
is made to be read beside the document, not to be fast: Python's standard library is all it
needs, and zstd.
"""
