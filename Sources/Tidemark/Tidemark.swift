// Programs import Tidemark alone and find the seams to disk, time and chance with it.
@_exported public import TidemarkEngine
