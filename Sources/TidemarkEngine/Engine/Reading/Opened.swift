// SAFETY: an Opened is handed over whole, and nobody keeps a part of it.

/// The parts that opening a store has put together; handed over whole to the engine.
struct Opened: @unchecked Sendable {
  var manifest: Manifest
  var manifests: ManifestStore
  var lock: (any FileLock)?
  var segments: [Segment]
  var index: Index
  var caches: LogCaches
  var keys: KeyRing
  var usage: SpaceUsage
  var lastSequence: UInt64
  var latestCommitTime: UInt64
  var durable: UInt64
  /// See `ReadState.staleBelow`.
  var staleBelow: UInt64
  var canWrite: Bool
}
