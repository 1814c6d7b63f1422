@_exported public import TidemarkStore
