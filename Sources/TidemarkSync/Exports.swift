// Programs import this module alone and find messages and peers with it.
@_exported public import TidemarkSyncProtocol
