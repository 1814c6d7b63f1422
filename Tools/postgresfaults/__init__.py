"""Campaigns against sync servers over PostgreSQL, with real processes on loopback.

From the bottom up: `cluster` (PostgreSQL), `servers` (sync servers), `proxy` (a connection that
breaks), `device` (clients that remember what was acknowledged), `oracle` (what must be true
afterwards), `trial` (all of them together), `kills`, `losses`, `stalls`, `connections`, `pooler`,
`races` (the faults), `selfcheck` (of the oracle), `main` (the command line).
"""


class Violation(Exception):
    """Something that must be true is not."""


class Skipped(Exception):
    """This machine cannot show the fault."""
