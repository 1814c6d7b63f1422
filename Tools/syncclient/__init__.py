"""A client of the sync server, written from WireProtocol.md alone and over JSON.

It shares no code with anything else here, so that a client in another language can be written by
reading it beside the document. From the bottom up: `faults`, `wire` (fields of messages),
`digest` (sums over keys), `state` (what is remembered), `connection` (calls over HTTP), `session`
(what the calls mean), `main` (the command line).
"""
