// Higher modules reach the engine's types, and its file system, clock and random numbers for tests,
// by importing the store.
@_exported public import TidemarkEngine
