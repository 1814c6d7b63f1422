// Programs import Tidemark alone and find its three rooms with it.
@_exported public import TidemarkCaches
@_exported public import TidemarkCollections
@_exported public import TidemarkStore
