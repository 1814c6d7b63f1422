// The modules above find the seams to disk, time and chance with the store.
@_exported public import TidemarkEngine
