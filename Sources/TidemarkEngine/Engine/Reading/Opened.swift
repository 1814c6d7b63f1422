// SAFETY: an Opened is handed over whole, and nobody keeps a part of it.

/// The result of opening a store, whose parts ``Reader`` and ``LogWriter`` then own.
struct Opened: @unchecked Sendable {
  var manifest: Manifest
  var manifests: ManifestStore
  /// The store's lock; nil for an opening that only reads.
  var lock: (any FileLock)?
  var segments: [Segment]
  var index: Index
  var caches: LogCaches
  var keys: KeyRing
  var usage: SpaceUsage
  var lastSequence: UInt64
  var latestCommitTime: UInt64
  /// The highest sequence known to be synced.
  var durable: UInt64
  /// Damage may have hidden entries below this sequence from the index; 0 for none.
  var uncertainBelow: UInt64
  var canWrite: Bool
  /// The unsealed end of the log that was recovered; nil after a clean close.
  var recovered: (entries: Int, bytes: Int)?
}
